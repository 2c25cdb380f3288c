use super::*;
use proptest::prelude::*;

fn edited(content: &str, old: &str, new: &str, which: Occurrences) -> Result<String, EditRefusal> {
    let edit = TextEdit::plan(content.as_bytes(), old, new, which)?;
    Ok(String::from_utf8(edit.apply(content.into())).unwrap())
}

#[test]
fn line_ends_stay_what_they_are() {
    for (content, old, new, result) in [
        ("a\r\nb\r\nc\r\n", "a\nb", "x\ny", "x\r\ny\r\nc\r\n"),
        ("a\r\nb\r\n", "a\r\nb", "x\r\ny", "x\r\ny\r\n"),
        ("a\r\nb\r\n", "b", "1\n2", "a\r\n1\r\n2\r\n"),
        ("a\nb\n", "a\r\nb", "x\r\ny", "x\ny\n"),
        ("a\nb\r\nc\n", "b\nc", "x\ny", "a\nx\r\ny\n"),
        ("a\nb\r\nc\n", "a\nb", "x\ny", "x\ny\r\nc\n"),
        ("one line", "one", "1\r\n", "1\r\n line"),
        ("\u{feff}a\nb", "a", "b", "\u{feff}b\nb"),
    ] {
        assert_eq!(
            edited(content, old, new, Occurrences::Single).as_deref(),
            Ok(result),
            "{content:?} {old:?}"
        );
    }
}

#[test]
fn what_is_unclear_is_refused() {
    assert_eq!(
        edited("a", "", "b", Occurrences::Single),
        Err(EditRefusal::Empty)
    );
    assert_eq!(
        edited("a", "a", "a", Occurrences::All),
        Err(EditRefusal::Same)
    );
    assert_eq!(
        edited("a", "b", "c", Occurrences::All),
        Err(EditRefusal::Missing)
    );
    assert_eq!(
        edited("a\nb\na a", "a", "c", Occurrences::Single),
        Err(EditRefusal::Ambiguous {
            lines: vec![1, 3, 3]
        })
    );
    assert_eq!(
        edited("aaa", "aa", "b", Occurrences::Single).as_deref(),
        Ok("ba")
    );
}

#[test]
fn bytes_that_are_no_text_stay() {
    let content = b"\xff\xfe\n a \0";
    let edit = TextEdit::plan(content, "a", "b", Occurrences::Single).unwrap();
    assert_eq!(
        edit,
        TextEdit {
            places: vec![4],
            old_len: 1,
            new: "b".into(),
            line: 2
        }
    );
    assert_eq!(edit.apply(content.to_vec()), b"\xff\xfe\n b \0");
}

/// Pieces that make matches, line ends of all kinds and characters of all lengths likely.
fn text(most: usize) -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "a", "b", "ab", "\n", "\r\n", "\r", "é", "日本", "\u{feff}", "🦀", " ",
    ]);
    prop::collection::vec(piece, 0..most).prop_map(|pieces| pieces.concat())
}

/// How `texts` are spelled in a file with these line ends, told without looking at the
/// implementation.
fn spelled(content: &str, text: &str) -> String {
    let all = content.matches('\n').count();
    let crlf = content.matches("\r\n").count();
    let lf = text.replace("\r\n", "\n");
    match (all, crlf) {
        (0, _) => text.to_owned(),
        (all, crlf) if all == crlf => lf.replace('\n', "\r\n"),
        (_, 0) => lf,
        (_, _) => text.to_owned(),
    }
}

proptest! {
    #[test]
    fn an_edit_is_what_replacing_text_is(content in text(40), old in text(4), new in text(4)) {
        prop_assume!(!old.is_empty() && old != new);
        let old_spelled = spelled(&content, &old);
        let new_spelled = spelled(&content, &new);
        let found = content.matches(&old_spelled).count();
        prop_assume!(found > 0);
        let every = edited(&content, &old, &new, Occurrences::All);
        prop_assert_eq!(every, Ok(content.replace(&old_spelled, &new_spelled)));
        let only = edited(&content, &old, &new, Occurrences::Single);
        if found == 1 {
            prop_assert_eq!(only, Ok(content.replacen(&old_spelled, &new_spelled, 1)));
        } else {
            let refused = matches!(only, Err(EditRefusal::Ambiguous { lines }) if lines.len() == found);
            prop_assert!(refused);
        }
    }

    /// Whatever is asked for, hints cost little and never fail.
    #[test]
    fn a_hint_is_given_for_anything(content in text(60), old in text(12)) {
        prop_assert!(edit_hint::missing_text_hint(content.as_bytes(), &old).starts_with("old_string was not found"));
    }
}
