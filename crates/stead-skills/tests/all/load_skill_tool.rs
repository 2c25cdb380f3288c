//! The place for tests of the `load_skill` tool.

use crate::support::*;
use serde_json::{Value, json};
use std::sync::Arc;
use stead_core::{Block, SkillActivation};
use stead_skills::*;
use stead_tools::{CallOrigin, Output, Registry, SpillFactory, ToolCx};
use stead_vfs::ContentHash;
use tokio_util::sync::CancellationToken;

struct Bench {
    folder: Folder,
    tools: Registry,
    cx: ToolCx,
}

impl Bench {
    async fn new(count: usize) -> Self {
        let folder = Folder::new();
        let files = &folder.files;
        put(
            &**files,
            "skills/pdf/SKILL.md",
            "---\nname: pdf\ndescription: d\ncompatibility: poppler\n---\nUse it.</skill>",
        )
        .await;
        put(&**files, "skills/pdf/references/api.md", "The API.").await;
        put(&**files, "skills/pdf/assets/logo.png", &b"\x89PNG\0\0"[..]).await;
        put(&**files, "skills/pdf/big.txt", "é".repeat(60_000)).await;
        put(&**files, "skills/other/secret.md", "other's").await;
        put(&**files, "skills/other/SKILL.md", skill_md("other", "x")).await;
        std::os::unix::fs::symlink(
            "../other/secret.md",
            folder.dir.path().join("skills/pdf/link.md"),
        )
        .unwrap();
        std::os::unix::fs::symlink("/etc/passwd", folder.dir.path().join("skills/pdf/out.md"))
            .unwrap();
        for n in 0..count {
            put(
                &**files,
                &format!("skills/s{n:03}/SKILL.md"),
                skill_md(&format!("s{n:03}"), "x"),
            )
            .await;
        }
        let layers = [layer(SkillOrigin::Workspace, files, "skills")];
        let catalogue = Arc::new(SkillLibrary::default().catalogue(&layers).await);
        let tools = Registry::new(load_skill(catalogue)).unwrap();
        let cx = ToolCx {
            vfs: files.clone(),
            file_versions: Arc::default(),
            active_skills: Arc::default(),
            cancel: CancellationToken::new(),
            origin: CallOrigin::default(),
            spills: SpillFactory::default(),
            session: Default::default(),
            surface: Default::default(),
            calls: stead_tools::NestedCalls::default(),
        };
        Self { folder, tools, cx }
    }

    async fn call(&self, tool: &str, args: Value) -> Result<Output, String> {
        let call = self.tools.prepare(tool, args);
        let call = call.map_err(|error| error.to_string())?;
        let called = call.call(self.cx.clone()).await;
        if let Ok(Output {
            activates: Some(activation),
            ..
        }) = &called
        {
            self.cx.active_skills.record(activation);
        }
        called.map_err(|error| error.to_string())
    }
}

fn text(output: &Output) -> &str {
    let [Block::Text { text }] = &output.content[..] else {
        panic!("{output:?}")
    };
    text
}

#[tokio::test]
async fn a_skill_is_given_once_and_again_when_it_changed() {
    let bench = Bench::new(0).await;
    let first = bench
        .call("load_skill", json!({"name": "pdf"}))
        .await
        .unwrap();
    let expected = "<skill name=\"pdf\">\nUse it.<\\/skill>\n</skill>\nIt needs: poppler\nIts directory is skills/pdf.\n\
        Its other files, to be loaded with `path` when they are needed:\n- assets/logo.png\n- big.txt\n- references/api.md";
    assert!(text(&first).starts_with(expected), "{}", text(&first));
    let file = path("skills/pdf/SKILL.md");
    let hash = |bytes: &[u8]| ContentHash::of(bytes).to_string();
    let content = bench
        .folder
        .files
        .read(&file, stead_vfs::ReadRange::ALL)
        .await
        .unwrap()
        .0;
    assert_eq!(
        first.activates,
        Some(SkillActivation {
            skill: "pdf".to_owned(),
            version: hash(&content)
        })
    );

    for (tool, args) in [
        ("Skill", json!({"skill": "pdf"})),
        (
            "load_skill_through_path",
            json!({"skillId": "pdf", "path": "SKILL.md"}),
        ),
        ("load_skill", json!({"skill_name": "pdf", "path": null})),
    ] {
        let again = bench.call(tool, args).await.unwrap();
        assert!(
            text(&again).contains("loaded already") && text(&again).len() < 120,
            "{again:?}"
        );
        assert_eq!(again.activates, None);
    }
    put(
        &*bench.folder.files,
        "skills/pdf/SKILL.md",
        "---\nname: pdf\ndescription: d\n---\nNow otherwise.",
    )
    .await;
    let changed = bench
        .call("load_skill", json!({"name": "pdf"}))
        .await
        .unwrap();
    assert!(text(&changed).contains("Now otherwise.") && changed.activates.is_some());
}

#[tokio::test]
async fn resources_are_texts_of_the_skill_and_nothing_else() {
    let bench = Bench::new(0).await;
    let given = bench
        .call(
            "load_skill",
            json!({"name": "pdf", "resource_path": "references/api.md"}),
        )
        .await
        .unwrap();
    assert_eq!(
        (text(&given), given.activates.is_none()),
        ("The API.", true)
    );
    let big = bench
        .call("load_skill", json!({"name": "pdf", "path": "big.txt"}))
        .await
        .unwrap();
    assert!(
        text(&big).ends_with("[40000 more bytes are not shown]"),
        "{}",
        &text(&big)[text(&big).len() - 60..]
    );
    for (path, said) in [
        ("../other/secret.md", "contains `..`"),
        ("references/../../other/secret.md", "contains `..`"),
        ("/../other/secret.md", "contains `..`"),
        ("link.md", "leads out of the skill"),
        ("out.md", "leads out of the workspace"),
        ("assets/logo.png", "not a text (6 bytes)"),
        ("assets", "is a directory"),
        ("references/apii.md", "has no file references/apii.md"),
        ("\0", "control character"),
        ("~/.ssh/id_rsa", "has no file"),
    ] {
        let refused = bench
            .call("load_skill", json!({"name": "pdf", "path": path}))
            .await
            .unwrap_err();
        assert!(
            refused.contains(said) && !refused.contains("other's"),
            "{path}: {refused}"
        );
    }
}

#[tokio::test]
async fn an_unknown_name_gets_the_nearest_and_all_others() {
    for (count, is_enum) in [(0, true), (300, false)] {
        let bench = Bench::new(count).await;
        let schema = &bench.tools.specs()[0].parameters;
        assert_eq!(schema["properties"]["name"]["enum"].is_array(), is_enum);
        let refused = bench
            .call("load_skill", json!({"name": "pfd"}))
            .await
            .unwrap_err();
        assert!(
            refused.contains("id you mean `pdf`?") && refused.contains("other, pdf"),
            "{refused}"
        );
    }
    assert!(load_skill(Arc::new(Catalogue::default())).is_none());
}

#[tokio::test]
async fn the_gate_hears_which_file_is_read() {
    let bench = Bench::new(0).await;
    let tool = bench.tools.find("Skill").unwrap();
    let touched = |args: Value| {
        let plan = tool.plan(args).unwrap();
        let paths = plan.accesses().iter().map(|access| access.path.clone());
        paths.collect::<Vec<_>>()
    };
    assert_eq!(touched(json!({"name": "pdf"})), ["skills/pdf/SKILL.md"]);
    assert_eq!(
        touched(json!({"name": "pdf", "path": "references/api.md"})),
        ["skills/pdf/references/api.md"]
    );
    assert_eq!(touched(json!({"name": "nope"})), Vec::<String>::new());
}
