//! Reading Rust source as far as the house rules need it: what is code, what is test, which paths are named.

use std::collections::BTreeSet;

/// How a name stands in the code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `a::b` or a lone `a`.
    Path,
    /// `a::b!`.
    Macro,
    /// `.a`, a method or field.
    Member,
}

/// A name in the code; `use` groups are expanded to one mention for each leaf.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mention {
    pub(crate) line: usize,
    pub(crate) path: Vec<String>,
    pub(crate) kind: Kind,
}

/// The code of `source`, same lines: comments, text and character literals become spaces.
pub(crate) fn code(source: &str) -> String {
    let chars: Vec<char> = source.chars().collect();
    let mut out = String::with_capacity(source.len());
    let mut at = 0;
    while at < chars.len() {
        let end = literal_end(&chars, at).unwrap_or(at);
        if end == at {
            out.push(chars[at]);
            at += 1;
        } else {
            out.extend(chars[at..end].iter().map(|&c| if c == '\n' { '\n' } else { ' ' }));
            at = end;
        }
    }
    out
}

/// The end of the comment or literal that starts at `at`, if one does.
fn literal_end(chars: &[char], at: usize) -> Option<usize> {
    let is = |offset: usize, c: char| chars.get(at + offset) == Some(&c);
    match chars[at] {
        '/' if is(1, '/') => Some((at..chars.len()).find(|&i| chars[i] == '\n').unwrap_or(chars.len())),
        '/' if is(1, '*') => Some(block_comment_end(chars, at)),
        '"' => Some(text_end(chars, at)),
        '\'' if is(1, '\\') => Some((at + 3..chars.len()).find(|&i| chars[i] == '\'').map_or(chars.len(), |i| i + 1)),
        '\'' if is(2, '\'') => Some(at + 3),
        'r' if at == 0 || !is_word(chars[at - 1]) || matches!(chars[at - 1], 'b' | 'c') => raw_text_end(chars, at),
        _ => None,
    }
}

fn block_comment_end(chars: &[char], start: usize) -> usize {
    let (mut at, mut depth) = (start, 0);
    while at < chars.len() {
        match (chars[at], chars.get(at + 1)) {
            ('/', Some('*')) => (at, depth) = (at + 2, depth + 1),
            ('*', Some('/')) => (at, depth) = (at + 2, depth - 1),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

fn text_end(chars: &[char], start: usize) -> usize {
    let mut at = start + 1;
    while at < chars.len() && chars[at] != '"' {
        at += if chars[at] == '\\' { 2 } else { 1 };
    }
    (at + 1).min(chars.len())
}

fn raw_text_end(chars: &[char], start: usize) -> Option<usize> {
    let hashes = chars[start + 1..].iter().take_while(|&&c| c == '#').count();
    let open = start + 1 + hashes;
    if chars.get(open) != Some(&'"') {
        return None;
    }
    let closes =
        |&at: &usize| chars[at] == '"' && chars[at + 1..].iter().take(hashes).filter(|&&c| c == '#').count() == hashes;
    Some((open + 1..chars.len()).find(closes).map_or(chars.len(), |at| at + 1 + hashes))
}

const TEST_MARK: &str = "#[cfg(test)]";

/// `code` without the items under `#[cfg(test)]`, same lines.
pub(crate) fn without_tests(code: &str) -> String {
    let mut out = code.to_owned();
    while let Some(start) = out.find(TEST_MARK) {
        let end = start + item_length(&out[start..]);
        let blank: String = out[start..end].chars().map(|c| if c == '\n' { '\n' } else { ' ' }).collect();
        out.replace_range(start..end, &blank);
    }
    out
}

/// Names of the modules that `code` declares under `#[cfg(test)]` and keeps in files of their own.
pub(crate) fn test_modules(code: &str) -> BTreeSet<String> {
    code.match_indices(TEST_MARK)
        .filter_map(|(start, _)| {
            let item = &code[start..start + item_length(&code[start..])];
            let name = item.strip_suffix(';')?.rsplit_once("mod ")?.1.trim();
            name.chars().all(is_word).then(|| name.to_owned())
        })
        .collect()
}

/// Bytes up to the end of the item that `text` starts with: a `;` or a closing brace, outside any bracket.
fn item_length(text: &str) -> usize {
    let mut depth = 0_i32;
    for (at, c) in text.char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        if depth < 0 {
            return at; // the end of what surrounds a marked field
        }
        if depth == 0 && matches!(c, ';' | '}') {
            return at + 1;
        }
    }
    text.len()
}

/// Every name in `code`, from [`code`] or [`without_tests`].
pub(crate) fn mentions(code: &str) -> Vec<Mention> {
    let tokens = tokens(code);
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let start = if tokens[at].1 == "::" { at + 1 } else { at };
        if tokens.get(start).is_some_and(|token| is_name(token.1)) {
            let member = at > 0 && tokens[at - 1].1 == ".";
            at = path(&tokens, start, &[], member, &mut found);
        } else {
            at += 1;
        }
    }
    found
}

type Token<'a> = (usize, &'a str);

/// Reads one path, or one tree of a `use`, and returns where it ends.
fn path(tokens: &[Token<'_>], start: usize, prefix: &[String], member: bool, found: &mut Vec<Mention>) -> usize {
    let line = tokens[start].0;
    let mut path = prefix.to_vec();
    path.push(tokens[start].1.to_owned());
    let mut at = start + 1;
    let text = |at: usize| tokens.get(at).map_or("", |token| token.1);
    while text(at) == "::" {
        match text(at + 1) {
            "{" => {
                at += 2;
                while at < tokens.len() && text(at) != "}" {
                    at = match text(at) {
                        "as" => at + 2, // the new name leads nowhere
                        name if is_name(name) => self::path(tokens, at, &path, false, found),
                        _ => at + 1,
                    };
                }
                return at + 1;
            }
            name if is_name(name) => path.push(name.to_owned()),
            _ => break,
        }
        at += 2;
    }
    let kind = match text(at) {
        "!" if text(at + 1) != "=" => Kind::Macro,
        _ if member => Kind::Member,
        _ => Kind::Path,
    };
    found.push(Mention { line, path, kind });
    at
}

/// Words, `::` and single signs, each with its line.
fn tokens(code: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    for (number, line) in code.lines().enumerate() {
        let mut rest = line.trim_start();
        while let Some(first) = rest.chars().next() {
            let length = if is_word(first) {
                rest.find(|c| !is_word(c)).unwrap_or(rest.len())
            } else if rest.starts_with("::") {
                2
            } else {
                first.len_utf8()
            };
            tokens.push((number + 1, &rest[..length]));
            rest = rest[length..].trim_start();
        }
    }
    tokens
}

fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| is_word(c) && !c.is_ascii_digit())
}

pub(crate) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(source: &str) -> Vec<String> {
        mentions(&code(source)).into_iter().map(|mention| mention.path.join("::")).collect()
    }

    #[test]
    fn comments_and_literals_are_no_code() {
        let source = "a // std::fs\n/* b /* c */ d */ e \"f \\\" g\" r#\"h \" i\"# 'j' '\\'' k<'l>('\\u{6d}')";
        assert_eq!(paths(source), ["a", "e", "k", "l"]);
        assert_eq!(code(source).lines().count(), 2);
        assert_eq!(paths("br\"x\" r#type b'y' b\"z\""), ["b", "r", "type", "b", "b"]);
    }

    #[test]
    fn use_groups_are_expanded() {
        let expected = ["use", "std::collections::BTreeMap", "std::fs::self", "std::fs::File", "crate::a::b"];
        assert_eq!(paths("use std::{collections::BTreeMap, fs::{self, File as F}}; crate::a::b"), expected);
        assert_eq!(paths("::std::fs::read::<u8>(x)"), ["std::fs::read", "u8", "x"]);
    }

    #[test]
    fn macros_and_members_are_told_from_paths() {
        let kinds: Vec<_> = mentions("println!(a.unwrap()) != b").into_iter().map(|mention| mention.kind).collect();
        assert_eq!(kinds, [Kind::Macro, Kind::Path, Kind::Member, Kind::Path]);
    }

    #[test]
    fn test_items_are_left_out_and_lines_kept() {
        let source = "a\n#[cfg(test)]\n#[allow(x)]\nmod tests {\n fn b() { c[0]; }\n}\nd\n#[cfg(test)]\nmod toys;\ne";
        let code = code(source);
        let rest = mentions(&without_tests(&code));
        assert_eq!(
            rest.iter().map(|m| (m.line, m.path[0].as_str())).collect::<Vec<_>>(),
            [(1, "a"), (7, "d"), (10, "e")]
        );
        assert_eq!(test_modules(&code), BTreeSet::from(["toys".to_owned()]));
    }
}
