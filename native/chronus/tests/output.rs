//! The output store against a model that keeps everything.

use std::collections::HashMap;

use chronus::init::output::{Limits, OutputStore, Piece, Source};
use proptest::prelude::*;
use rustix::fs::{Mode, OFlags};

const LIMITS: Limits = Limits {
    start: 8,
    head: 40,
    tail: 32,
    files: 200,
    memory: 24,
};

#[derive(Debug, Clone)]
enum Step {
    Append(u64, bool, usize),
    End(u64),
    Expire(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..5u64, any::<bool>(), 1..60usize).prop_map(|(c, out, n)| Step::Append(c, out, n)),
        1 => (0..5u64).prop_map(Step::End),
        1 => (0..5u64).prop_map(Step::Expire),
    ]
}

struct Directory(std::path::PathBuf);

impl Directory {
    fn new() -> Self {
        static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let name = format!("chronus-output-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn store(&self, limits: Limits) -> OutputStore {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        OutputStore::new(
            rustix::fs::open(&self.0, flags, Mode::empty()).unwrap(),
            limits,
        )
    }

    fn file_bytes(&self) -> u64 {
        let entries = std::fs::read_dir(&self.0).unwrap();
        entries
            .map(|entry| entry.unwrap().metadata().unwrap().len())
            .sum()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap();
    }
}

/// Reads a whole stream: its bytes with gaps as `None`, and the number of bytes in gaps.
fn read_all(store: &mut OutputStore, command: u64, source: Source) -> (Vec<Option<u8>>, u64) {
    let (mut all, mut gaps) = (Vec::new(), 0);
    let mut buffer = [0; 7];
    loop {
        match store.read(command, source, all.len() as u64, &mut buffer) {
            Piece::Bytes(count) => all.extend(buffer[..count].iter().copied().map(Some)),
            Piece::Gap(count) => {
                gaps += count;
                all.resize(all.len() + usize::try_from(count).unwrap(), None);
            }
            Piece::Nothing => return (all, gaps),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn offsets_and_counts_are_right_whatever_is_dropped(steps in prop::collection::vec(step(), 1..80)) {
        let directory = Directory::new();
        let mut store = directory.store(LIMITS);
        let mut model: HashMap<(u64, Source), Vec<u8>> = HashMap::new();
        let mut ended = [false; 5];
        for command in 0..5 {
            store.add(command, &format!("c{command}"));
        }
        let mut byte = 0u8;
        for step in steps {
            match step {
                Step::Append(command, out, count) => {
                    let source = if out { Source::Stdout } else { Source::Stderr };
                    let bytes: Vec<u8> = (0..count).map(|_| { byte = byte.wrapping_add(1); byte }).collect();
                    store.append(command, source, &bytes);
                    model.entry((command, source)).or_default().extend(&bytes);
                }
                Step::End(command) if !ended[command as usize] => {
                    ended[command as usize] = true;
                    store.end(command);
                }
                Step::End(_) => {}
                Step::Expire(command) => store.expire(command),
            }
        }
        for (&(command, source), written) in &model {
            let (read, gaps) = read_all(&mut store, command, source);
            let count = store.count(command, source);
            prop_assert_eq!(read.len(), written.len());
            prop_assert_eq!(count.bytes, written.len() as u64);
            prop_assert_eq!(count.dropped, gaps);
            for (at, value) in read.iter().enumerate() {
                prop_assert!(value.is_none_or(|value| value == written[at]), "byte {} differs", at);
            }
        }
        for command in 0..5 {
            store.forget(command);
        }
        prop_assert_eq!(directory.file_bytes(), 0, "nothing is left on disk");
    }

    #[test]
    fn one_stream_keeps_exactly_its_head_and_tail(total in 0usize..400, chunk in 1usize..50) {
        let directory = Directory::new();
        let mut store = directory.store(Limits { files: 1000, ..LIMITS });
        store.add(1, "c1");
        let written: Vec<u8> = (0..total).map(|at| (at % 251) as u8).collect();
        for piece in written.chunks(chunk) {
            store.append(1, Source::Stdout, piece);
        }
        let (read, gaps) = read_all(&mut store, 1, Source::Stdout);
        prop_assert_eq!(gaps, total.saturating_sub(72) as u64);
        for (at, value) in read.into_iter().enumerate() {
            let kept = at < 40 || at + 32 >= total;
            prop_assert_eq!(value, kept.then_some(written[at]), "at {}", at);
        }
    }
}

#[test]
fn two_hundred_megabytes_stay_within_the_bounds_of_disk() {
    let directory = Directory::new();
    let mut store = directory.store(Limits::default());
    store.add(1, "c1");
    let chunk = vec![b'y'; 65_536];
    for _ in 0..3200 {
        store.append(1, Source::Stdout, &chunk);
    }
    let count = store.count(1, Source::Stdout);
    assert_eq!(count.bytes, 3200 * 65_536);
    assert_eq!(count.dropped, count.bytes - 16 * 1024 * 1024);
    assert!(directory.file_bytes() <= 16 * 1024 * 1024);
}

#[test]
fn output_goes_on_being_counted_when_its_directory_is_gone() {
    let directory = Directory::new();
    let mut store = directory.store(LIMITS);
    store.add(1, "c1");
    std::fs::remove_dir_all(&directory.0).unwrap();
    store.append(1, Source::Stdout, &[1; 100]);
    std::fs::create_dir(&directory.0).unwrap();
    let count = store.count(1, Source::Stdout);
    assert_eq!((count.bytes, count.dropped), (100, 92));
}
