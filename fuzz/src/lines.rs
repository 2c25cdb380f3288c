//! Formats of single lines: variables, facts, journal lines, paths.

use stead_core::{ChainSum, decode_line, encode_line};
use stead_memory::{Fact, FactDocument, without_sources};
use stead_vfs::VPath;
use stead_workspace::parse_dotenv;

/// Asserts that a `.env` file gives only names that a shell accepts, and that its findings are at
/// lines of the file.
pub fn dotenv(data: &[u8]) {
    let text = crate::text(data);
    let (variables, findings) = parse_dotenv(".env", &text);
    for name in variables.keys() {
        let valid = !name.starts_with(|c: char| c.is_ascii_digit())
            && !name.is_empty()
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        assert!(valid, "the name {name:?}");
    }
    let lines = text.lines().count();
    for finding in findings {
        assert!(finding.place.line as usize <= lines, "{finding}");
    }
}

/// Asserts that a fact is the same when it is printed and parsed again, that its text is what is
/// shown of the line, and that a file of facts keeps its text.
pub fn fact(data: &[u8]) {
    let text = crate::text(data);
    let document = FactDocument::parse(&text);
    assert_eq!(document.text(), text, "the file keeps its text");
    for line in document.lines() {
        let shown = without_sources(line);
        assert!(line.starts_with(shown), "shown: {shown:?}");
        if let Some(fact) = Fact::parse(line) {
            let printed = fact.to_string();
            assert_eq!(Fact::parse(&printed).as_ref(), Some(&fact), "{printed:?}");
        }
    }
}

/// Asserts that a line which is accepted is accepted again when it is written anew.
pub fn journal_line(data: &[u8]) {
    let text = crate::text(data);
    let mut previous = ChainSum::START;
    for line in text.split('\n') {
        let Ok(decoded) = decode_line(line, previous) else {
            return;
        };
        assert!(line.contains(&decoded.sum.to_string()), "the checksum");
        let (again, sum) = encode_line(decoded.seq, decoded.at, &decoded.entry, previous);
        let again = decode_line(again.trim_end(), previous);
        assert_eq!(
            again.map(|line| (line.seq, line.entry, line.sum)),
            Ok((decoded.seq, decoded.entry, sum))
        );
        previous = decoded.sum;
    }
}

/// Asserts that a path stays below its root, and is the same when it is parsed again.
pub fn path(data: &[u8]) {
    let text = crate::text(data);
    let Ok(path) = VPath::parse(&text) else {
        return;
    };
    assert_eq!(VPath::parse(path.as_str()).as_ref(), Ok(&path));
    for part in path.parts() {
        assert!(!matches!(part, "" | "." | ".."), "the part {part:?}");
    }
    assert!(!path.as_str().contains('\0'), "a NUL");
    assert!(VPath::root().contains(&path), "outside of the root");
    if let Some(parent) = path.parent() {
        assert!(parent.contains(&path), "outside of {parent}");
        assert_eq!(parent.join(path.name()), Ok(path));
    }
}
