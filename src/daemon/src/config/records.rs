//! `[records]`: what is kept of decisions, so that they can be explained and made again.

use super::reader::{Bound, Key, Reader, Section};
use hintd_engine::RecordSettings;
use toml::de::DeValue;

/// A share of all decisions, in millionths.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
pub(super) struct Share(pub(super) u32);

impl Key for Share {
    fn read(value: &DeValue<'_>) -> Result<Self, String> {
        if value.as_str() == Some("all") {
            return Ok(Self(1_000_000));
        }
        let share = f64::read(value).map_err(|_| "a share from 0 to 1 is wanted, or \"all\"".to_owned())?;
        if (0.0..=1.0).contains(&share) {
            Ok(Self((share * 1e6).round() as u32))
        } else {
            Err(format!("{share} is no share from 0 to 1"))
        }
    }
}

/// Bytes, as a number or with a unit.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
struct Size(usize);

impl Key for Size {
    fn read(value: &DeValue<'_>) -> Result<Self, String> {
        let Some(text) = value.as_str() else { return usize::read(value).map(Self) };
        let digits = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
        let shift = match &text[digits..] {
            "" | "B" => 0,
            "KiB" => 10,
            "MiB" => 20,
            "GiB" => 30,
            _ => return Err(format!("\"{text}\" is no size, as in \"512KiB\", \"64MiB\" or \"1GiB\"")),
        };
        let amount: Option<usize> = text[..digits].parse().ok();
        let bytes = amount.and_then(|amount| amount.checked_mul(1 << shift));
        bytes.map(Self).ok_or_else(|| format!("\"{text}\" is no size, as in \"512KiB\", \"64MiB\" or \"1GiB\""))
    }
}

impl Bound for Size {
    fn show(&self) -> String {
        match self.0 {
            bytes if bytes > 0 && bytes.is_multiple_of(1 << 20) => format!("{}MiB", bytes >> 20),
            bytes => bytes.to_string(),
        }
    }
}

/// Reads the section.
pub(super) fn read(root: &mut Section<'_>, reader: &mut Reader<'_>) -> RecordSettings {
    let mut section = root.section(reader, "records");
    let settings = RecordSettings {
        // All: an operator asks about one decision, and it should be there.
        per_million: section.get(reader, "sample", Share(1_000_000)).0,
        // Minutes of a busy cluster, and a twentieth of what the daemon may take by deploy's limits.
        bytes: section.bounded(reader, "bytes", Size(64 << 20), Size(0)..=Size(1 << 40)).0,
    };
    section.finish(reader);
    settings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn read(text: &str) -> RecordSettings {
        Config::from_text(text, "f").unwrap().options.settings.engine.records
    }

    #[test]
    fn a_share_and_a_size_are_read_as_people_write_them_and_need_no_restart() {
        assert_eq!(read(""), RecordSettings::default());
        assert_eq!(read("[records]\nsample = \"all\"\nbytes = \"64MiB\"\n"), RecordSettings::default());
        assert_eq!(
            read("[records]\nsample = 0.25\nbytes = 4096\n"),
            RecordSettings { per_million: 250_000, bytes: 4096 }
        );
        assert_eq!(
            read("[records]\nsample = 0\nbytes = \"2GiB\"\n"),
            RecordSettings { per_million: 0, bytes: 2 << 30 }
        );
        let set = Config::from_text("[records]\nbytes = \"1MiB\"\n", "f").unwrap();
        assert_eq!(set.changes(&Config::from_text("", "f").unwrap()).1, Vec::<String>::new());
    }

    #[test]
    fn what_can_not_be_meant_is_refused_with_its_line() {
        for (line, part) in [
            ("sample = 1.5", "1.5 is no share from 0 to 1"),
            ("sample = \"some\"", "a share from 0 to 1 is wanted, or \"all\""),
            ("bytes = \"64MB\"", "\"64MB\" is no size"),
            ("bytes = \"99999999999999999999MiB\"", "is no size"),
            ("bytes = -1", "whole number"),
        ] {
            let found = Config::from_text(&format!("[records]\n{line}\n"), "f").err().unwrap().0;
            assert_eq!((found.len(), found[0].line), (1, 2), "{line}");
            assert!(found[0].message.contains(part), "{line}: {}", found[0].message);
        }
    }
}
