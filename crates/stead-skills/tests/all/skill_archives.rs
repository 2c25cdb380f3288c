//! The place for tests of skill archives: malicious and damaged archives are refused, good ones are
//! installed.

use crate::support::*;
use std::io::Write;
use stead_skills::*;
use tar::{EntryType, Header};

/// An entry, right or wrong.
#[derive(Clone)]
struct Entry {
    name: Vec<u8>,
    content: Vec<u8>,
    kind: EntryType,
    mode: u32,
}

fn file(name: impl AsRef<[u8]>, content: impl AsRef<[u8]>) -> Entry {
    let name = name.as_ref().to_vec();
    let content = content.as_ref().to_vec();
    Entry {
        name,
        content,
        kind: EntryType::Regular,
        mode: 0o644,
    }
}

fn special(name: &str, kind: EntryType) -> Entry {
    Entry {
        kind,
        ..file(name, "")
    }
}

/// A skill that is fine: what is wrong with an archive is what is added to it.
fn good() -> Vec<Entry> {
    let script = Entry {
        mode: 0o755,
        ..file("pdf/scripts/run.sh", "#!/bin/sh\n")
    };
    vec![
        special("pdf/", EntryType::Directory),
        file("pdf/SKILL.md", skill_md("pdf", "Use it.")),
        script,
    ]
}

fn tar_of(entries: &[Entry]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for entry in entries {
        let mut header = Header::new_gnu();
        let name = &mut header.as_old_mut().name;
        name[..entry.name.len()].copy_from_slice(&entry.name);
        header.set_entry_type(entry.kind);
        header.set_mode(entry.mode);
        header.set_size(entry.content.len() as u64);
        if matches!(entry.kind, EntryType::Symlink | EntryType::Link) {
            header.set_link_name("/etc/passwd").unwrap();
        }
        header.set_cksum();
        builder.append(&header, &*entry.content).unwrap();
    }
    builder.into_inner().unwrap()
}

fn gz(content: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

fn deflated(content: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

/// What a zip says that is not so.
#[derive(Clone, Copy, PartialEq)]
enum Lie {
    None,
    SmallSize,
    OtherLocalName,
    Encrypted,
    Overlap,
    Zip64,
    WrongSum,
}

fn zip_of(entries: &[Entry], lie: Lie) -> Vec<u8> {
    let mut out = Vec::new();
    let mut directory = Vec::new();
    for entry in entries {
        let offset = if lie == Lie::Overlap {
            0
        } else {
            out.len() as u32
        };
        let packed = deflated(&entry.content);
        let mut sum = flate2::Crc::new();
        sum.update(&entry.content);
        let sum = if lie == Lie::WrongSum { 7 } else { sum.sum() };
        let is_file = entry.kind == EntryType::Regular;
        let size = if lie == Lie::SmallSize && is_file {
            10
        } else {
            entry.content.len() as u32
        };
        let flags = u16::from(lie == Lie::Encrypted);
        let kind = match entry.kind {
            EntryType::Directory => 0o040_000,
            EntryType::Symlink => 0o120_000,
            EntryType::Fifo => 0o010_000,
            EntryType::Char => 0o020_000,
            _ => 0o100_000,
        };
        let mut common = Vec::new();
        common.extend(20_u16.to_le_bytes());
        common.extend(flags.to_le_bytes());
        common.extend(8_u16.to_le_bytes());
        common.extend([0; 4]);
        common.extend(sum.to_le_bytes());
        common.extend((packed.len() as u32).to_le_bytes());
        common.extend(size.to_le_bytes());
        common.extend((entry.name.len() as u16).to_le_bytes());
        common.extend([0; 2]);
        out.extend(b"PK\x03\x04");
        out.extend(&common);
        match lie {
            Lie::OtherLocalName => out.extend(vec![b'x'; entry.name.len()]),
            _ => out.extend(&entry.name),
        }
        out.extend(&packed);
        directory.extend(b"PK\x01\x02");
        directory.extend([20, 3]);
        directory.extend(&common);
        directory.extend([0; 6]);
        directory.extend(((kind | entry.mode) << 16).to_le_bytes());
        directory.extend(offset.to_le_bytes());
        directory.extend(&entry.name);
    }
    let start = out.len() as u32;
    let size = directory.len() as u32;
    let count = entries.len() as u16;
    let count = if lie == Lie::Zip64 { u16::MAX } else { count };
    out.extend(directory);
    out.extend(b"PK\x05\x06\0\0\0\0");
    out.extend(count.to_le_bytes());
    out.extend(count.to_le_bytes());
    out.extend(size.to_le_bytes());
    out.extend(start.to_le_bytes());
    out.extend([0; 2]);
    out
}

/// Installs an archive into `to`, as `stead skills add` does.
async fn add(to: &Folder, name: &str, archive: &[u8]) -> Result<Vec<String>, String> {
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join(name), archive).unwrap();
    let source = SkillSource::parse(name, place.path().to_str().unwrap()).unwrap();
    let fetched = source
        .fetch("source", &|_| None, &SkillProgress::default())
        .await
        .map_err(|error| error.to_string())?;
    let mut installation = Installation::open(to.files.clone()).await.unwrap();
    installation
        .install("source", &fetched, &SkillProgress::default())
        .await
        .map_err(|error| error.to_string())?;
    Ok(installation.sources()[0]
        .skills
        .iter()
        .map(|skill| skill.name.clone())
        .collect())
}

fn pax_sparse() -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for entry in good() {
        let mut header = Header::new_gnu();
        header.set_mode(entry.mode);
        header.set_size(entry.content.len() as u64);
        header.set_entry_type(entry.kind);
        builder
            .append_data(
                &mut header,
                std::str::from_utf8(&entry.name).unwrap(),
                &*entry.content,
            )
            .unwrap();
    }
    builder
        .append_pax_extensions([
            ("GNU.sparse.major", &b"1"[..]),
            ("GNU.sparse.realsize", b"99999999999"),
        ])
        .unwrap();
    let mut header = Header::new_gnu();
    header.set_mode(0o644);
    header.set_size(1);
    builder
        .append_data(&mut header, "pdf/hole", &b"x"[..])
        .unwrap();
    builder.into_inner().unwrap()
}

#[tokio::test]
async fn an_archive_that_attacks_leaves_nothing_behind() {
    let one = |entry: Entry| [good(), vec![entry]].concat();
    let bad_names: Vec<(&[u8], &str)> = vec![
        (b"../evil", "contains `..`"),
        (b"pdf/../../evil", "contains `..`"),
        (b"/etc/evil", "is absolute"),
        (b"C:evil", "drive letter"),
        (b"c:/evil", "drive letter"),
        (b"pdf\\..\\evil", "backslash"),
        (b"pdf/a\nb", "control character"),
        (b"pdf/\xff", "not UTF-8"),
        (b"pdf//x", "empty part"),
        (b"pdf/./x", "empty part"),
        (b"~/x", "begins with `~`"),
        (b"pdf/.git/config", "is part of a repository"),
        (b"pdf/scripts/.git/config", "is part of a repository"),
        (b"pdf/.GIT/config", "is part of a repository"),
        (b"pdf/scripts/.git", "is part of a repository"),
        (b"pdf/.env", "is a place for secrets"),
        (b"pdf/keys/id_rsa", "is a place for secrets"),
        (b"pdf/agent.yaml", "holds settings of a workspace"),
        (b"pdf/hooks/h.yaml", "holds settings of a workspace"),
        (b"pdf/.stead/x", "holds settings of a workspace"),
    ];
    let mut attacks: Vec<(String, Vec<Entry>, &str)> = bad_names
        .into_iter()
        .map(|(name, said)| {
            (
                format!("name {:?}", String::from_utf8_lossy(name)),
                one(file(name, "evil")),
                said,
            )
        })
        .collect();
    let setuid = Entry {
        mode: 0o4755,
        ..file("pdf/su", "x")
    };
    let many: Vec<Entry> = (0..10_001).map(|n| file(format!("pdf/{n}"), "")).collect();
    attacks.extend([
        (
            "symbolic link".to_owned(),
            one(special("pdf/link", EntryType::Symlink)),
            "a symbolic link",
        ),
        (
            "pipe".to_owned(),
            one(special("pdf/pipe", EntryType::Fifo)),
            "a pipe",
        ),
        (
            "device".to_owned(),
            one(special("pdf/device", EntryType::Char)),
            "a device",
        ),
        ("setuid".to_owned(), one(setuid), "setuid"),
        (
            "duplicate".to_owned(),
            one(file("pdf/SKILL.md", "other")),
            "would be one file",
        ),
        (
            "case".to_owned(),
            one(file("PDF/skill.md", "other")),
            "would be one file",
        ),
        (
            "unicode".to_owned(),
            [one(file("pdf/é", "")), vec![file("pdf/e\u{301}", "")]].concat(),
            "would be one file",
        ),
        (
            "file as directory".to_owned(),
            one(file("pdf/SKILL.md/x", "other")),
            "would be one file",
        ),
        (
            "many".to_owned(),
            [good(), many].concat(),
            "more than 10000 entries",
        ),
        (
            "bomb".to_owned(),
            one(file("pdf/zeros", vec![0; 30 * 1024 * 1024])),
            "unpacks to more than",
        ),
        (
            "no skill".to_owned(),
            vec![file("README.md", "hello")],
            "there is no skill",
        ),
        (
            "no usable skill".to_owned(),
            vec![file("pdf/SKILL.md", "no front matter")],
            "no front matter",
        ),
    ]);
    let mut archives: Vec<(String, &str, Vec<u8>, &str)> = Vec::new();
    for (what, entries, said) in attacks {
        archives.push((
            format!("{what}, zip"),
            "a.zip",
            zip_of(&entries, Lie::None),
            said,
        ));
        if what != "bomb" {
            archives.push((format!("{what}, tar"), "a.tar", tar_of(&entries), said));
        }
        archives.push((
            format!("{what}, tar.gz"),
            "a.tgz",
            gz(&tar_of(&entries)),
            said,
        ));
    }
    let nul = one(file("pdf/a\0b", ""));
    let cut = zip_of(&good(), Lie::None);
    let cut_tar = tar_of(&good());
    let two_skills = vec![
        file("a/x/SKILL.md", skill_md("x", "")),
        file("b/X/SKILL.md", skill_md("x", "")),
    ];
    archives.extend([
        (
            "large".to_owned(),
            "a.zip",
            vec![0; 100 * 1024 * 1024 + 1],
            "the archive itself is larger than 104857600 bytes",
        ),
        (
            "nul".to_owned(),
            "a.zip",
            zip_of(&nul, Lie::None),
            "contains a NUL",
        ),
        (
            "hard link".to_owned(),
            "a.tar",
            tar_of(&one(special("pdf/hard", EntryType::Link))),
            "a hard link",
        ),
        (
            "sparse".to_owned(),
            "a.tar",
            tar_of(&one(special("pdf/hole", EntryType::GNUSparse))),
            "",
        ),
        ("pax sparse".to_owned(), "a.tar", pax_sparse(), "sparse"),
        (
            "declared small".to_owned(),
            "a.zip",
            zip_of(&good(), Lie::SmallSize),
            "is not what the directory says",
        ),
        (
            "wrong sum".to_owned(),
            "a.zip",
            zip_of(&good(), Lie::WrongSum),
            "is not what the directory says",
        ),
        (
            "two names".to_owned(),
            "a.zip",
            zip_of(&good(), Lie::OtherLocalName),
            "two names",
        ),
        (
            "encrypted".to_owned(),
            "a.zip",
            zip_of(&good(), Lie::Encrypted),
            "is encrypted",
        ),
        (
            "overlap".to_owned(),
            "a.zip",
            zip_of(&good(), Lie::Overlap),
            "",
        ),
        (
            "zip64".to_owned(),
            "a.zip",
            zip_of(&good(), Lie::Zip64),
            "64-bit",
        ),
        (
            "cut zip".to_owned(),
            "a.zip",
            cut[..cut.len() / 2].to_vec(),
            "it is not a zip",
        ),
        (
            "junk behind".to_owned(),
            "a.zip",
            [cut.clone(), vec![1, 2, 3]].concat(),
            "it is not a zip",
        ),
        (
            "cut tar".to_owned(),
            "a.tar",
            cut_tar[..1100].to_vec(),
            "cannot be read",
        ),
        (
            "a second tar behind".to_owned(),
            "a.tar",
            [cut_tar.clone(), cut_tar.clone()].concat(),
            "something follows its end",
        ),
        ("not gzip".to_owned(), "a.tgz", cut_tar, "cannot be read"),
        ("empty".to_owned(), "a.zip", Vec::new(), "it is not a zip"),
        (
            "one directory twice".to_owned(),
            "a.zip",
            zip_of(&two_skills, Lie::None),
            "is there twice",
        ),
    ]);
    assert!(archives.len() > 80, "{}", archives.len());
    let folder = Folder::new();
    put(&*folder.files, "AGENTS.md", "persona").await;
    let before = tree(&*folder.files).await;
    for (what, name, archive, said) in archives {
        let refused = add(&folder, name, &archive).await;
        assert!(
            refused
                .as_ref()
                .is_err_and(|refused| refused.contains(said)),
            "{what}: {refused:?}"
        );
        assert_eq!(tree(&*folder.files).await, before, "{what}");
    }
}

#[tokio::test]
async fn a_good_archive_of_each_kind_is_installed_with_its_executable_bits() {
    let below = |entries: Vec<Entry>| -> Vec<Entry> {
        let moved = |entry: Entry| Entry {
            name: [b"repo-v1/", &entry.name[..]].concat(),
            ..entry
        };
        entries.into_iter().map(moved).collect()
    };
    let root = vec![
        file("./SKILL.md", skill_md("pdf", "Use it.")),
        file("./extra.txt", "x"),
    ];
    let global = vec![special("pax_global_header", EntryType::XGlobalHeader)];
    for (what, name, archive, dir) in [
        ("zip", "a.zip", zip_of(&good(), Lie::None), "pdf"),
        ("tar", "a.tar", tar_of(&good()), "pdf"),
        ("tar.gz", "a.tar.gz", gz(&tar_of(&good())), "pdf"),
        (
            "one directory around all",
            "a.tgz",
            gz(&tar_of(&below(good()))),
            "pdf",
        ),
        ("the root is the skill", "a.tar", tar_of(&root), "pdf"),
        ("of git", "a.tar", tar_of(&[global, good()].concat()), "pdf"),
    ] {
        let folder = Folder::new();
        assert_eq!(
            add(&folder, name, &archive).await,
            Ok(vec!["pdf".to_owned()]),
            "{what}"
        );
        let tree = tree(&*folder.files).await;
        let skill = tree[&format!(".stead/skills/source/{dir}/SKILL.md")].clone();
        assert_eq!(
            skill,
            Some((skill_md("pdf", "Use it.").into_bytes(), false)),
            "{what}"
        );
        if !what.contains("root") {
            let script = tree[".stead/skills/source/pdf/scripts/run.sh"].clone();
            assert_eq!(script, Some((b"#!/bin/sh\n".to_vec(), true)), "{what}");
        }
        assert!(
            !tree.keys().any(|path| path.contains("staging")),
            "{tree:?}"
        );
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(stead_testkit::rounds(300) as u32))]
    #[test]
    fn no_damage_to_an_archive_panics_or_escapes(at in 0_usize..2000, byte in proptest::prelude::any::<u8>(), cut in 0_usize..2000) {
        for (format, archive) in [
            (ArchiveFormat::Zip, zip_of(&good(), Lie::None)),
            (ArchiveFormat::Tar, tar_of(&good())),
            (ArchiveFormat::TarGz, gz(&tar_of(&good()))),
        ] {
            let mut damaged = archive.clone();
            let place = at % damaged.len();
            damaged[place] = byte;
            let _ = Bundle::from_archive(format, &damaged);
            damaged.truncate(cut % archive.len());
            let _ = Bundle::from_archive(format, &damaged);
        }
    }
}
