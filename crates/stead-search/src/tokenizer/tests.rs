use super::*;

fn of(text: &str) -> (Vec<String>, Vec<String>) {
    let (sequence, beside): (Vec<SearchToken>, Vec<SearchToken>) = tokenize(text)
        .tokens
        .into_iter()
        .partition(|w| w.kind.is_sequence());
    let texts = |words: Vec<SearchToken>| words.into_iter().map(|word| word.text).collect();
    (texts(sequence), texts(beside))
}

#[test]
fn text_becomes_words_in_every_script_and_in_code() {
    #[rustfmt::skip]
    let table: &[(&str, &[&str], &[&str])] = &[
        ("", &[], &[]),
        ("  …—!? ", &[], &[]),
        ("Running the tests", &["run", "the", "test"], &[]),
        ("Café déjà-vu", &["cafe", "deja", "vu"], &["deja_vu", "dejavu"]),
        ("Cafe\u{301}", &["cafe"], &[]),
        ("STRASSE Straße", &["strass", "strass"], &[]),
        ("don't don’t", &["dont", "dont"], &[]),
        ("数据库", &["数", "据", "库"], &["数据", "据库"]),
        ("爱 Rust语言", &["爱", "rust", "语", "言"], &["语言"]),
        ("データ", &["デ", "ー", "タ"], &["デー", "ータ"]),
        ("데이터", &["데", "이", "터"], &["데이", "이터"]),
        ("ＡＢＣ１２", &["abc12"], &[]),
        ("HttpModel", &["http", "model"], &["httpmodel"]),
        ("HTTPServer", &["http", "server"], &["httpserver"]),
        ("read_lines", &["read", "line"], &["read_lines", "readlin"]),
        ("a/b/c.rs", &["a", "b", "c", "rs"], &["c_rs", "a_b_c_rs"]),
        ("src\\main.rs", &["src", "main", "rs"], &["main_rs", "src_main_rs"]),
        ("std::env::var", &["std", "env", "var"], &["std_env_var"]),
        ("error[E0308]: 3.14 v1.2.3", &["error", "e0308", "3", "14", "v1", "2", "3"], &["3_14", "314", "v1_2_3"]),
        ("me@example.org", &["me", "exampl", "org"], &["me_example_org"]),
        ("end. Next", &["end", "next"], &[]),
        ("ends....here", &["end", "here"], &[]),
        ("नमस्ते", &["नमस्ते"], &[]),
        ("½", &["12"], &[]),
        ("🎉", &[], &[]),
    ];
    for (text, sequence, beside) in table {
        let expected: (Vec<String>, Vec<String>) = (
            sequence.iter().map(|&w| w.into()).collect(),
            beside.iter().map(|&w| w.into()).collect(),
        );
        assert_eq!(of(text), expected, "{text:?}");
    }
}

#[test]
fn a_long_word_is_cut() {
    let (words, _) = of(&"x9".repeat(200));
    assert_eq!(words, ["x9".repeat(32)]);
}

/// FTS5 gets words between quotes and spaces, so words must not contain them.
fn check(text: &str) -> Result<(), String> {
    for word in tokenize(text).tokens {
        let plain =
            |c: char| !c.is_ascii() || c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        if word.text.is_empty() || !word.text.chars().all(plain) {
            return Err(format!("{word:?} of {text:?}"));
        }
        if text.get(word.span.clone()).is_none_or(str::is_empty) {
            return Err(format!("{word:?} is not in {text:?}"));
        }
    }
    Ok(())
}

#[test]
fn every_character_alone_makes_proper_words() {
    let wrong: Vec<_> = (char::MIN..=char::MAX)
        .filter_map(|c| check(c.encode_utf8(&mut [0; 4])).err())
        .collect();
    assert_eq!(wrong, Vec::<String>::new());
}

proptest::proptest! {
    #[test]
    fn words_are_letters_and_their_places_are_in_the_text(text in "\\PC{0,60}|.{0,60}") {
        check(&text).map_err(proptest::test_runner::TestCaseError::fail)?;
    }
}
