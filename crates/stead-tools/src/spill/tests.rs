use super::*;
use crate::{Registry, Surface, file_tools};
use std::sync::Mutex;
use stead_vfs::{ReadRange, StoreVfs};

const MB: usize = 1024 * 1024;

struct Held {
    spills: SpillFactory,
    files: Arc<dyn Vfs>,
    heard: Arc<Mutex<Vec<String>>>,
}

fn path(text: &str) -> VPath {
    VPath::parse(text).unwrap()
}

fn held(cap_bytes: u64, quota_bytes: u64, secrets: &[&str]) -> Held {
    let files: Arc<dyn Vfs> = Arc::new(StoreVfs::in_memory());
    let heard: Arc<Mutex<Vec<String>>> = Arc::default();
    let told = heard.clone();
    let site = SpillSite {
        files: files.clone(),
        folder: path("offload/s"),
        name: "c1".to_owned(),
        cap_bytes,
        quota: Arc::new(Quota::new(files.clone(), path("offload/s"), quota_bytes)),
        redactor: Redactor::new(secrets.iter().map(|&secret| secret.to_owned())),
        readers: ReadTools::available_in(&Registry::new(file_tools()).unwrap(), Surface::Snake),
        listener: Arc::new(move |text| told.lock().unwrap().push(text)),
    };
    Held {
        spills: SpillFactory::at(site),
        files,
        heard,
    }
}

impl Held {
    async fn names(&self) -> Vec<String> {
        match self.files.list(&path("offload/s")).await {
            Ok(entries) => entries.into_iter().map(|entry| entry.name).collect(),
            Err(_) => Vec::new(),
        }
    }

    async fn content(&self, name: &str) -> Vec<u8> {
        self.files
            .read(&path(&format!("offload/s/{name}")), ReadRange::ALL)
            .await
            .unwrap()
            .0
            .to_vec()
    }
}

fn text(output: &Output) -> &str {
    match output.content.as_slice() {
        [stead_core::Block::Text { text }] => text,
        other => panic!("not one text: {other:?}"),
    }
}

#[tokio::test]
async fn what_fits_into_memory_is_given_back_and_leaves_no_file() {
    let held = held(SpillSite::CAP_BYTES, 512 * MB as u64, &[]);
    let mut spill = held.spills.spill();
    assert_eq!(spill.write(b"some\n").await, SinkState::Accepting);
    assert_eq!(
        spill.write("bytes é\n".as_bytes()).await,
        SinkState::Accepting
    );
    assert_eq!(text(&spill.finish().await), "some\nbytes é\n");
    assert_eq!(held.names().await, Vec::<String>::new());
    assert_eq!(held.heard.lock().unwrap().concat(), "some\nbytes é\n");
}

#[tokio::test]
async fn a_long_output_is_in_the_file_to_the_last_byte() {
    let held = held(SpillSite::CAP_BYTES, 512 * MB as u64, &[]);
    let whole: String = (1..=100_000).map(|n| format!("line {n} é\n")).collect();
    for (number, piece) in [7, 4096, 100_000].into_iter().enumerate() {
        let mut spill = held.spills.spill();
        for piece in whole.as_bytes().chunks(piece) {
            assert_eq!(spill.write(piece).await, SinkState::Accepting);
        }
        let name = if number == 0 {
            "c1.txt".to_owned()
        } else {
            format!("c1-{}.txt", number + 1)
        };
        let readers = held.spills.0.as_ref().unwrap().site.readers;
        let want = Preview::of(crate::PreviewKind::Output, &whole, 20_000)
            .render_stored(&path(&format!("offload/s/{name}")), &readers);
        assert_eq!(text(&spill.finish().await), want);
        assert!(held.content(&name).await == whole.as_bytes(), "{name}");
    }
    assert_eq!(held.names().await, ["c1-2.txt", "c1-3.txt", "c1.txt"]);
}

#[tokio::test]
async fn beyond_the_cap_and_the_quota_only_the_true_end_is_kept_and_the_writer_is_told() {
    let cases = [
        (MB, 512 * MB, "of one output 1 MB are kept", MB),
        (
            64 * MB,
            2 * MB,
            "the files of this session have reached 2 MB (offload.max_mb)",
            2 * MB,
        ),
    ];
    for (cap, quota, why, kept) in cases {
        let held = held(cap as u64, quota as u64, &[]);
        let mut spill = held.spills.spill();
        let mut rooms = Vec::new();
        for _ in 0..5 {
            rooms.push(spill.write(&vec![b'x'; MB]).await);
        }
        spill.write(b"\nthe end\n").await;
        let full = kept / MB - usize::from(why.starts_with("of one"));
        assert_eq!(
            rooms
                .iter()
                .filter(|room| **room == SinkState::Accepting)
                .count(),
            full,
            "{why}: {rooms:?}"
        );
        let told = spill.finish().await;
        let start = format!(
            "[The output has {} bytes in 2 lines. Its first {kept} bytes are in offload/s/c1.txt; read_file with offset=0 \
             goes on where the beginning stops, grep_files with that path searches it. The rest is lost: {why}.]\nxxx",
            5 * MB + 9
        );
        assert!(text(&told).starts_with(&start), "{}", text(&told));
        assert!(text(&told).ends_with("x\nthe end\n"), "{}", text(&told));
        assert_eq!(held.content("c1.txt").await.len(), kept);
        if quota < cap {
            let mut none = held.spills.spill();
            none.write(&vec![b'y'; MB]).await;
            let told = none.finish().await;
            assert!(
                text(&told).contains(&format!("Only its ends are shown: {why}.]\nyyy")),
                "{}",
                text(&told)
            );
            assert_eq!(held.names().await, ["c1.txt"]);
        }
    }
}

#[tokio::test]
async fn binary_data_is_kept_as_it_is_and_not_shown() {
    let held = held(SpillSite::CAP_BYTES, 512 * MB as u64, &[]);
    let data: Vec<u8> = (0..300_000u64).map(|n| (n * 7 % 251) as u8).collect();
    let mut spill = held.spills.spill();
    spill.write(&data).await;
    let lines = data.split_inclusive(|&byte| byte == b'\n').count();
    let want = format!(
        "[The output has 300000 bytes in {lines} lines. All of it is in offload/s/c1.bin. It is binary data, which cannot \
         be shown.]"
    );
    assert_eq!(text(&spill.finish().await), want);
    assert!(held.content("c1.bin").await == data);
}

#[tokio::test]
async fn no_secret_reaches_the_file_however_it_is_cut() {
    let held = held(SpillSite::CAP_BYTES, 512 * MB as u64, &["sk-verysecret"]);
    let whole = "word sk-verysecret ".repeat(20_000);
    let mut spill = held.spills.spill();
    for piece in whole.as_bytes().chunks(5) {
        spill.write(piece).await;
    }
    let told = spill.finish().await;
    assert!(!text(&told).contains("secret"), "{}", text(&told));
    assert!(held.content("c1.txt").await == "word [redacted] ".repeat(20_000).as_bytes());
    assert!(
        !held
            .heard
            .lock()
            .unwrap()
            .concat()
            .contains("sk-verysecret")
    );
}

#[tokio::test]
async fn listeners_are_told_a_few_times_a_second_and_a_little() {
    let held = held(SpillSite::CAP_BYTES, 512 * MB as u64, &[]);
    let mut spill = held.spills.spill();
    let started = std::time::Instant::now();
    for _ in 0..2000 {
        spill.write(&[b'x'; 1024]).await;
    }
    spill.finish().await;
    let intervals = started.elapsed().as_millis() as usize / 100;
    let heard = held.heard.lock().unwrap();
    assert!(
        (1..=intervals + 3).contains(&heard.len()),
        "{} in {intervals} intervals",
        heard.len()
    );
    assert!(heard.iter().all(|piece| piece.len() <= 4096));
}

#[tokio::test]
async fn a_spill_that_is_dropped_leaves_nothing() {
    let held = held(SpillSite::CAP_BYTES, 512 * MB as u64, &[]);
    let mut spill = held.spills.spill();
    spill.write(&vec![b'x'; 3 * MB]).await;
    drop(spill);
    assert_eq!(held.names().await, Vec::<String>::new());
}

#[tokio::test]
async fn outside_a_session_the_ends_are_kept() {
    let mut spill = SpillFactory::default().spill();
    assert_eq!(spill.write(&vec![b'x'; MB]).await, SinkState::Full);
    let told = spill.finish().await;
    let want = "[The output has 1048576 bytes in 1 line. Only its ends are shown: there is no session that keeps more.]";
    assert!(text(&told).starts_with(want), "{}", text(&told));
}

#[test]
fn a_spill_can_be_held_by_a_call_on_any_thread() {
    fn sent<T: Send>(_: T) {}
    let mut spill = SpillFactory::default().spill();
    sent(spill.write(b"x"));
    sent(spill.finish());
}
