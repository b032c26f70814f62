//! HTTP/2 header compression (RFC 7541): writes plain literals, reads Huffman-coded ones. The peer is told to use no
//! dynamic table.

/// The code length of each byte value and of the end mark, `A` for 5 bits and so on. The code is canonical: codes of
/// one length count up.
const BITS: &[u8; 257] = b"ISXXXXXXXTZXXZXXXXXXXXZXXXXXXXXXBFFHIBDGFFDGDBBBAAABBBBBBBCDKBHFIBCCCCCCCCCCCCCCCC\
    CCCCCCDCDIOIJBKABABABBBACCBBBABCBAABCCCCCKGJIXPRPPRRRSRSSSSSTSTTRSTSSSSQRSRSSTRQPRRSSQSRRTQRSSQQRQSRSSPRRRSRRSVVP\
    ORSRUVVVWWVTUOQVWWVWTQQVVXWWWPTPQRQQSRRUUTTVSVWVVWWWWWXWWWWWVZ";

/// Encodes header fields as plain literals.
pub(crate) fn write(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in fields {
        out.push(0);
        for text in [name, value] {
            integer(text.len(), 0x7F, 0, &mut out);
            out.extend(text.as_bytes());
        }
    }
    out
}

fn integer(value: usize, most: usize, first: u8, out: &mut Vec<u8>) {
    if value < most {
        out.push(first | value as u8);
        return;
    }
    out.push(first | most as u8);
    let mut rest = value - most;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// Decodes header fields. Of the names in the static table only `:status` is resolved.
pub(crate) fn read(mut block: &[u8]) -> Vec<(String, String)> {
    let mut fields = Vec::new();
    while let Some(&first) = block.first() {
        if first & 0x80 != 0 {
            let index = take_integer(&mut block, 0x7F);
            fields.push((static_name(index), static_value(index)));
        } else if first & 0xE0 == 0x20 {
            take_integer(&mut block, 0x1F);
        } else {
            let most = if first & 0xC0 == 0x40 { 0x3F } else { 0x0F };
            let index = take_integer(&mut block, most);
            let name = if index == 0 { take_text(&mut block) } else { static_name(index) };
            fields.push((name, take_text(&mut block)));
        }
    }
    fields
}

fn static_name(index: usize) -> String {
    match index {
        8..=14 => ":status".to_owned(),
        1..=61 => format!("(static {index})"),
        _ => panic!("the peer was told to keep no table, and refers to its row {index}"),
    }
}

fn static_value(index: usize) -> String {
    match index {
        8 => "200",
        13 => "404",
        14 => "500",
        _ => "",
    }
    .to_owned()
}

fn take_integer(block: &mut &[u8], most: usize) -> usize {
    let mut byte = || {
        let (&first, rest) = block.split_first().expect("a number goes on");
        *block = rest;
        usize::from(first)
    };
    let mut value = byte() & most;
    if value < most {
        return value;
    }
    let mut shift = 0;
    loop {
        let part = byte();
        value += (part & 0x7F) << shift;
        shift += 7;
        if part < 0x80 {
            return value;
        }
    }
}

fn take_text(block: &mut &[u8]) -> String {
    let huffman = block[0] & 0x80 != 0;
    let length = take_integer(block, 0x7F);
    let (bytes, rest) = block.split_at(length);
    *block = rest;
    let bytes = if huffman { unpacked(bytes) } else { bytes.to_vec() };
    String::from_utf8_lossy(&bytes).into_owned()
}

/// All codes as (length, code, byte), sorted.
fn codes() -> Vec<(u32, u32, usize)> {
    let mut order: Vec<(u32, usize)> =
        BITS.iter().enumerate().map(|(at, bits)| (u32::from(bits - b'A') + 5, at)).collect();
    order.sort_unstable();
    let (mut code, mut length) = (0, 5);
    let mut codes = Vec::new();
    for (bits, byte) in order {
        code <<= bits - length;
        length = bits;
        codes.push((bits, code, byte));
        code += 1;
    }
    codes
}

fn unpacked(bytes: &[u8]) -> Vec<u8> {
    let codes = codes();
    let (mut out, mut code, mut length) = (Vec::new(), 0_u32, 0);
    for byte in bytes {
        for bit in (0..8).rev() {
            code = code << 1 | u32::from(byte >> bit & 1);
            length += 1;
            if let Ok(found) = codes.binary_search_by_key(&(length, code), |&(bits, code, _)| (bits, code)) {
                out.push(u8::try_from(codes[found].2).expect("the end is never written"));
                (code, length) = (0, 0);
            }
        }
    }
    out
}

#[test]
fn a_packed_text_reads_as_the_standard_has_it() {
    // RFC 7541, C.4.1: www.example.com
    let packed = [0xF1, 0xE3, 0xC2, 0xE5, 0xF2, 0x3A, 0x6B, 0xA0, 0xAB, 0x90, 0xF4, 0xFF];
    assert_eq!(unpacked(&packed), b"www.example.com");
    let block = write(&[("hintd-reason", "unknown")]);
    assert_eq!(read(&block), [("hintd-reason".to_owned(), "unknown".to_owned())]);
}
