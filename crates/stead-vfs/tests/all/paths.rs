//! The place for tests of parsing and joining `VPath`.

use proptest::prelude::*;
use stead_vfs::{PathError, VPath};

#[test]
fn texts_become_paths_or_are_refused_with_the_reason() {
    let long_name = "n".repeat(256);
    let long_path = "d/".repeat(2049);
    let parsed = |text: &str| VPath::parse(text).map(|path| path.as_str().to_owned());
    for (text, path) in [
        ("", ""),
        (".", ""),
        ("/", ""),
        ("//a/./b//", "a/b"),
        ("/etc/passwd", "etc/passwd"),
        ("a..b/...", "a..b/..."),
        ("~draft", "~draft"),
        ("a/~", "a/~"),
        ("日本/ñ\u{301}", "日本/ñ\u{301}"),
    ] {
        assert_eq!(parsed(text).as_deref(), Ok(path), "{text:?}");
    }
    for (text, error) in [
        ("..", PathError::Parent("..".into())),
        ("a/../../b", PathError::Parent("a/../../b".into())),
        ("~", PathError::Home("~".into())),
        ("~/x", PathError::Home("~/x".into())),
        ("/./~/x", PathError::Home("/./~/x".into())),
        ("a\0b", PathError::Control("a\0b".into())),
        ("a\nb", PathError::Control("a\nb".into())),
        (&long_name, PathError::TooLong),
        (&long_path, PathError::TooLong),
    ] {
        assert_eq!(parsed(text), Err(error), "{text:?}");
    }
}

proptest! {
    #[test]
    fn parsing_is_idempotent_and_nothing_in_a_path_leads_up(text in "[a-c./~\\\\ é]{0,24}") {
        if let Ok(path) = VPath::parse(&text) {
            prop_assert_eq!(VPath::parse(path.as_str()), Ok(path.clone()));
            prop_assert_eq!(VPath::parse(&path.to_string()), Ok(path.clone()));
            prop_assert!(path.parts().all(|part| !part.is_empty() && part != "." && part != ".."));
        }
    }

    #[test]
    fn joining_stays_inside(base in "[a-c/]{0,8}", rest in "[a-c./~]{0,12}") {
        let base = VPath::parse(&base).unwrap();
        if let Ok(joined) = base.join(&rest) {
            prop_assert!(base.contains(&joined));
        }
    }
}
