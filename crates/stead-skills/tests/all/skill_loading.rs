//! The place for tests of lenient loading of SKILL.md files.

use stead_skills::{SkillFlavor, parse_skill};

/// Name, description and body of what was loaded, with the number of warnings.
type Loaded = (String, String, String, usize);

fn loaded(flavor: SkillFlavor, text: &[u8]) -> Result<Loaded, String> {
    let skill = parse_skill(flavor, "pdf", text).map_err(|problem| problem.to_string())?;
    Ok((
        skill.header.name,
        skill.header.description,
        skill.body,
        skill.warnings.len(),
    ))
}

fn utf16(text: &str) -> Vec<u8> {
    b"\xff\xfe"
        .iter()
        .copied()
        .chain(text.encode_utf16().flat_map(u16::to_le_bytes))
        .collect()
}

#[test]
fn what_can_be_understood_is_used_and_the_rest_is_skipped_with_a_reason() {
    let long = "n".repeat(70);
    let fine = |name: &str, description: &str, warnings: usize| {
        Ok((
            name.to_owned(),
            description.to_owned(),
            "Body.".to_owned(),
            warnings,
        ))
    };
    let table: Vec<(Vec<u8>, Result<Loaded, &str>)> = vec![
        (
            b"---\nname: pdf\ndescription: d\n---\n\nBody.\n".to_vec(),
            fine("pdf", "d", 0),
        ),
        (
            "\u{feff}---\nname: pdf\ndescription: d\n---\nBody.".into(),
            fine("pdf", "d", 0),
        ),
        (
            b"---\r\nname: pdf\r\ndescription: d\r\n---\r\nBody.\r\n".to_vec(),
            fine("pdf", "d", 0),
        ),
        (
            b"---\nname: other\ndescription: d\n---\nBody.".to_vec(),
            fine("other", "d", 1),
        ),
        (
            format!("---\nname: {long}\ndescription: d\n---\nBody.").into(),
            fine(&long, "d", 2),
        ),
        (
            b"---\ndescription: d\n---\nBody.".to_vec(),
            fine("pdf", "d", 1),
        ),
        (
            b"---\nname: pdf\ndescription: Use: for PDF\n---\nBody.".to_vec(),
            fine("pdf", "Use: for PDF", 1),
        ),
        (
            b"---\nname: pdf\ndescription: say \"a: b\\c\"\n---\nBody.".to_vec(),
            fine("pdf", "say \"a: b\\c\"", 1),
        ),
        (
            b"---\nname: pdf\ndescription: d\nx-other: {a: [1]}\n---\nBody.".to_vec(),
            fine("pdf", "d", 0),
        ),
        (
            b"---\nname: pdf\ndescription: a --- b\n---\nBody.".to_vec(),
            fine("pdf", "a --- b", 0),
        ),
        (
            format!(
                "---\nname: pdf\ndescription: {}\n---\nBody.",
                "d".repeat(1030)
            )
            .into(),
            fine("pdf", &"d".repeat(1024), 1),
        ),
        (
            b"---\nname: pdf\n---\nBody.".to_vec(),
            Err("it has no description"),
        ),
        (
            b"---\nname: pdf\ndescription:\n---\nBody.".to_vec(),
            Err("it has no description"),
        ),
        (
            b"---\nname: [\n---\nBody.".to_vec(),
            Err("this is not YAML"),
        ),
        (
            b"---\nname: pdf\ndescription: d\n".to_vec(),
            Err("not closed"),
        ),
        (b"Body.".to_vec(), Err("no front matter")),
        (
            b"---\n---\nBody.".to_vec(),
            Err("the front matter is empty"),
        ),
        (b"---\n- a\n---\nBody.".to_vec(), Err("not a map")),
        (
            b"---\nname: pdf\ndescription: \xff\n---\n".to_vec(),
            Err("3:14: it is not UTF-8"),
        ),
        (utf16("---\nname: pdf\n---\n"), Err("it is UTF-16")),
        (vec![b'a'; 1024 * 1024 + 1], Err("the limit is 1048576")),
    ];
    for (text, expected) in table {
        let said = loaded(SkillFlavor::Standard, &text);
        let shown = String::from_utf8_lossy(&text[..text.len().min(80)]).into_owned();
        match expected {
            Ok(expected) => assert_eq!(said, Ok(expected), "{shown:?}"),
            Err(reason) => assert!(
                said.as_ref().is_err_and(|said| said.contains(reason)),
                "{shown:?}: {said:?}"
            ),
        }
    }
}

#[test]
fn every_field_arrives() {
    let text = "---\nname: pdf\ndescription: d\nlicense: MIT\ncompatibility: Linux\nallowed-tools: Bash(git:*) Read\nmetadata:\n  author: me\n  \
                version: '1.10'\n---\n";
    let header = parse_skill(SkillFlavor::Standard, "pdf", text.as_bytes())
        .unwrap()
        .header;
    assert_eq!(
        (header.license.as_deref(), header.compatibility.as_deref()),
        (Some("MIT"), Some("Linux"))
    );
    assert_eq!(header.allowed_tools, ["Bash(git:*)", "Read"]);
    assert_eq!(
        header.metadata,
        [
            ("author".to_owned(), "me".to_owned()),
            ("version".to_owned(), "1.10".to_owned())
        ]
        .into()
    );
}

#[test]
fn openpaw_takes_whole_files_and_openharness_finds_descriptions() {
    let whole = "---\nname: [\n---\nBody.";
    let table = [
        (
            SkillFlavor::OpenPaw,
            "# Just text",
            ("pdf", "", "# Just text", 0),
        ),
        (
            SkillFlavor::OpenPaw,
            "---\nname: style\ndescription: d\nversion: 1.0\n---\nBody.",
            ("style", "d", "Body.", 0),
        ),
        (
            SkillFlavor::OpenPaw,
            "---\nname: style\n---\nBody.",
            ("style", "", "Body.", 0),
        ),
        (SkillFlavor::OpenPaw, whole, ("pdf", "", whole, 1)),
        (
            SkillFlavor::OpenHarness,
            "# Title\n\nReads PDF files.\n",
            (
                "pdf",
                "Reads PDF files.",
                "# Title\n\nReads PDF files.\n",
                0,
            ),
        ),
        (
            SkillFlavor::OpenHarness,
            "---\nname: x\n---\n# Only a title",
            ("x", "Only a title", "# Only a title", 0),
        ),
    ];
    for (flavor, text, (name, description, body, warnings)) in table {
        let expected = (
            name.to_owned(),
            description.to_owned(),
            body.to_owned(),
            warnings,
        );
        assert_eq!(loaded(flavor, text.as_bytes()), Ok(expected), "{text:?}");
    }
    let version = parse_skill(SkillFlavor::OpenPaw, "pdf", b"---\nversion: 1.10\n---\n")
        .unwrap()
        .header
        .metadata;
    assert_eq!(version, [("version".to_owned(), "1.10".to_owned())].into());
    let cut = parse_skill(
        SkillFlavor::OpenPaw,
        "pdf",
        format!("---\ndescription: {}\n---\n", "d".repeat(2000)).as_bytes(),
    )
    .unwrap();
    assert_eq!(cut.header.description.len(), 1024);
    assert!(
        loaded(SkillFlavor::OpenHarness, b"---\nname: x\n---\n\n")
            .is_err_and(|said| said.contains("no text"))
    );
}
