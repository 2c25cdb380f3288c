//! The place for tests of a person's own settings and keys: `config.yaml` and `stead auth`.

use crate::support::{Done, Folder, done};
use std::os::unix::fs::PermissionsExt;
use stead_testkit::{FakeModel, reply};

const KEY: &str = "sk-stored-key-12345";

fn server() -> FakeModel {
    FakeModel::start_with(|_| reply().text("done"))
}

fn folder() -> Folder {
    let folder = Folder::from_elsewhere();
    folder.put("AGENTS.md", "You keep notes.\n");
    folder.put("agent.yaml", "{}\n");
    folder
}

fn configure(folder: &Folder, text: &str) {
    let dir = folder.config().join("stead");
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("config.yaml"), text).unwrap();
}

fn store_key(folder: &Folder, provider: &str, key: &str) -> Done {
    done(folder.command(&["auth", "add", provider]).write_stdin(key))
}

#[test]
fn the_model_and_endpoint_of_a_persons_settings_are_used() {
    let (folder, server) = (folder(), server());
    let text = format!(
        "model: openai:of-the-person\nproviders:\n  openai: {{base_url: '{}', api_key: '${{WORK_KEY}}'}}\nprofiles:\n  - {{for: openai, prompt_suffix: Answer in one word.}}\n",
        server.openai_url()
    );
    configure(&folder, &text);
    let with_key = |args: &[&str]| done(folder.command(args).env("WORK_KEY", KEY));
    with_key(&["run", "hi"]).exits(0);
    let request = server.last_request();
    assert_eq!(
        request.header("authorization"),
        Some(&*format!("Bearer {KEY}"))
    );
    assert_eq!(request.json["model"], "of-the-person");
    assert!(request.json.to_string().contains("Answer in one word."));
    let explained = with_key(&["explain"]).exits(0).out;
    let file = folder.config().join("stead/config.yaml");
    for line in [
        format!(
            "model.name = \"openai:of-the-person\"  ({}:1:1)",
            file.display()
        ),
        format!("providers.openai.api_key = \"•••\"  ({}:3:", file.display()),
    ] {
        assert!(explained.contains(&line), "{line}: {explained}");
    }
    assert!(!explained.contains(KEY), "{explained}");
    // The folder's own choice of a model goes before.
    folder.put("agent.yaml", "model: openai:of-the-folder\n");
    with_key(&["run", "hi"]).exits(0);
    assert_eq!(server.last_request().json["model"], "of-the-folder");
}

#[test]
fn a_mistake_in_the_settings_is_told_with_its_place() {
    let folder = folder();
    configure(&folder, "model: openai:x\ntheme: dark\n");
    let wrong = folder.run(&["run", "hi"]).exits(2);
    assert!(wrong.err.contains("config.yaml:2:1: "), "{wrong:#?}");
    // Keys can still be managed.
    store_key(&folder, "openai", KEY).exits(0);
}

#[test]
fn a_key_is_sent_to_another_host_only_if_the_persons_settings_name_it() {
    let (folder, server) = (folder(), server());
    let settings = format!(
        "model: {{name: 'openai:x', base_url: '{}', api_key: '${{OPENAI_API_KEY}}'}}\n",
        server.openai_url()
    );
    folder.put("agent.yaml", &settings);
    let run = || {
        done(
            folder
                .command(&["run", "--trust", "hi"])
                .env("OPENAI_API_KEY", KEY),
        )
    };
    let refused = run().exits(2);
    let told = format!(
        "names the endpoint {}, which is not sent the key in OPENAI_API_KEY",
        server.base_url()
    );
    assert!(refused.err.contains(&told), "{refused:#?}");
    assert!(
        refused.err.contains("providers.openai.hosts"),
        "{refused:#?}"
    );
    assert_eq!(server.requests().len(), 0);
    configure(
        &folder,
        &format!(
            "providers: {{openai: {{hosts: ['{}']}}}}\n",
            server.base_url()
        ),
    );
    run().exits(0);
    let request = server.last_request();
    assert_eq!(
        request.header("authorization"),
        Some(&*format!("Bearer {KEY}"))
    );
}

#[test]
fn a_stored_key_is_used_like_the_variable_and_never_shown() {
    let (folder, server) = (folder(), server());
    configure(
        &folder,
        &format!(
            "providers: {{openai: {{base_url: '{}'}}}}\n",
            server.openai_url()
        ),
    );
    let stored = store_key(&folder, "openai", &format!("  {KEY}\n")).exits(0);
    assert!(!stored.out.contains(KEY) && !stored.err.contains(KEY));
    let listed = folder.run(&["auth", "list"]).exits(0);
    assert_eq!(listed.out, "openai\n");
    let file = folder.config().join("stead/keys/openai");
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&file), 0o600);
    assert_eq!(mode(file.parent().unwrap()), 0o700);
    let run = |key: Option<&str>| {
        let mut command = folder.command(&["run", "-m", "openai:x", &format!("say {KEY}")]);
        command.envs(key.map(|key| ("OPENAI_API_KEY", key)));
        done(&mut command).exits(0);
        server
            .last_request()
            .header("authorization")
            .map(str::to_owned)
    };
    assert_eq!(run(None), Some(format!("Bearer {KEY}")));
    assert_eq!(
        run(Some("sk-of-the-variable")),
        Some("Bearer sk-of-the-variable".to_owned())
    );
    for file in folder.files() {
        let text = std::fs::read(&file).unwrap();
        let text = String::from_utf8_lossy(&text);
        let is_journal = file.to_string_lossy().contains("sessions");
        assert!(!is_journal || !text.contains(KEY), "{}", file.display());
    }
    // A key that others can read is refused.
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let open = folder.run(&["run", "-m", "openai:x", "hi"]).exits(2);
    assert!(open.err.contains("can be read by other users"), "{open:#?}");
    folder.run(&["auth", "remove", "openai"]).exits(0);
    assert_eq!(folder.run(&["auth", "list"]).exits(0).out, "");
    folder.run(&["auth", "remove", "openai"]).exits(2);
}

#[test]
fn what_cannot_be_a_key_is_refused() {
    let folder = folder();
    for (provider, key) in [("openai", ""), ("openai", "two words"), ("nobody", KEY)] {
        store_key(&folder, provider, key).exits(2);
    }
    // A key is never an argument.
    folder.run(&["auth", "add", "openai", KEY]).exits(2);
    assert!(!folder.config().join("stead/keys").exists());
}

#[test]
fn an_agent_cannot_reach_the_settings_if_they_lie_in_its_workspace() {
    let folder = folder();
    store_key(&folder, "openai", KEY).exits(0);
    // The home folder as a workspace, and the settings at their usual place in it.
    let inside = folder.path().join("conf");
    std::fs::rename(
        folder.config().join("stead"),
        folder.path().join("stead-moved"),
    )
    .unwrap();
    std::fs::create_dir(&inside).unwrap();
    std::fs::rename(folder.path().join("stead-moved"), inside.join("stead")).unwrap();
    let tool = |name: &str, args: &str| {
        let mut command = folder.command(&["tool", name, args, "--approve", "all"]);
        done(command.env("XDG_CONFIG_HOME", &inside))
    };
    let read = tool("read_file", r#"{"file_path": "conf/stead/keys/openai"}"#).exits(1);
    assert!(
        !read.out.contains(KEY) && !read.err.contains(KEY),
        "{read:#?}"
    );
    tool(
        "write_file",
        r#"{"file_path": "conf/stead/trusted/x.json", "content": "{}"}"#,
    )
    .exits(1);
    assert!(!inside.join("stead/trusted/x.json").exists());
}
