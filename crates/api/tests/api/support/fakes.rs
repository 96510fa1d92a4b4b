//! What a cluster's logs and this process's loops say, in the test's hands.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use api::{LogReading, LogSource, LogUnavailable, Readiness};
use domain::ClusterName;
use remote::{LogAnswer, LogChunk, LogFinds, LogFrom, LogHit, LogPattern, LogQuestion, SearchedLog};
use slurm::RemotePath;

/// Logs by the end of their path; an outage takes them all away.
#[derive(Default)]
pub(crate) struct FakeLogs {
    files: Mutex<BTreeMap<String, (u64, Vec<u8>)>>,
    pub(crate) outage: Mutex<Option<&'static str>>,
    /// The commands so far.
    pub(crate) asked: Mutex<Vec<Vec<LogQuestion>>>,
    /// Whoever holds it holds up every answer.
    pub(crate) hold: Arc<tokio::sync::Mutex<()>>,
}

impl FakeLogs {
    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        self.replace(name, 7, bytes);
    }

    /// Another file under the name.
    pub(crate) fn replace(&self, name: &str, inode: u64, bytes: impl AsRef<[u8]>) {
        self.files.lock().unwrap().insert(name.to_owned(), (inode, bytes.as_ref().to_vec()));
    }

    pub(crate) fn append(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let mut files = self.files.lock().unwrap();
        files.entry(name.to_owned()).or_insert((7, Vec::new())).1.extend_from_slice(bytes.as_ref());
    }

    fn answer(&self, question: &LogQuestion) -> LogAnswer {
        let files = self.files.lock().unwrap();
        match question {
            LogQuestion::Files { directory, .. } => {
                let role = format!("{}/", directory.file_name());
                LogAnswer::Files(
                    files.keys().filter_map(|name| Some(name.strip_prefix(&role)?.to_owned())).collect(),
                )
            }
            LogQuestion::Part { paths, from, max_bytes, .. } => {
                let found =
                    |path: &RemotePath| files.iter().find(|(name, _)| path.as_str().ends_with(name.as_str()));
                let Some((path, (inode, bytes))) = paths.iter().find_map(|path| Some((path, found(path)?.1)))
                else {
                    return LogAnswer::Missing;
                };
                LogAnswer::Chunk(part(path, *inode, bytes, *from, *max_bytes))
            }
            LogQuestion::Search { pattern, .. } if pattern.is_expression && pattern.text.as_str() == "(" => {
                LogAnswer::InvalidPattern("Unmatched ( or \\(".to_owned())
            }
            LogQuestion::Search { logs, pattern, from, most, .. } => {
                let (mut left, mut searched) = (*most as usize, Vec::new());
                for paths in logs {
                    let found = |path: &RemotePath| {
                        files.iter().find(|(name, _)| path.as_str().ends_with(name.as_str()))
                    };
                    let log = paths.iter().find_map(|path| Some((path, &found(path)?.1.1)));
                    searched.push(log.map_or(SearchedLog::Missing, |(path, bytes)| {
                        SearchedLog::Read(finds(path, bytes, pattern, *from, &mut left))
                    }));
                }
                LogAnswer::Searched(searched)
            }
        }
    }
}

/// Each place of the text, as the program finds it; the window is the whole log.
fn finds(path: &RemotePath, bytes: &[u8], pattern: &LogPattern, from: u64, left: &mut usize) -> LogFinds {
    let text = pattern.text.as_str().as_bytes();
    let from = usize::try_from(from).unwrap().min(bytes.len());
    let mut finds =
        LogFinds { path: path.clone(), size: bytes.len() as u64, to: bytes.len() as u64, hits: vec![] };
    let places = (from..bytes.len()).filter(|at| bytes[*at..].starts_with(text));
    for at in places {
        if *left == 0 {
            finds.to = finds.hits.last().map_or(from as u64, |last: &LogHit| last.offset + 1);
            break;
        }
        *left -= 1;
        let (offset, length) = (at as u64, text.len() as u64);
        finds.hits.push(LogHit { offset, length, start: 0, window: bytes.to_vec() });
    }
    finds
}

fn part(path: &RemotePath, inode: u64, whole: &[u8], from: LogFrom, most: u64) -> LogChunk {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let (start, end) = match from {
        LogFrom::Offset(offset) => {
            let start = usize::try_from(offset).unwrap_or(usize::MAX).min(whole.len());
            (start, start.saturating_add(most).min(whole.len()))
        }
        LogFrom::TailLines(lines) => {
            let body = whole.strip_suffix(b"\n").unwrap_or(whole);
            let breaks = (0..body.len()).rev().filter(|at| body[*at] == b'\n');
            let start = breaks.map(|at| at + 1).nth(lines as usize - 1).unwrap_or(0);
            (start.max(whole.len().saturating_sub(most)), whole.len())
        }
    };
    LogChunk {
        path: path.clone(),
        size: whole.len() as u64,
        inode,
        start: start as u64,
        bytes: whole[start..end].to_vec(),
    }
}

impl LogSource for FakeLogs {
    fn ask(&self, _: &ClusterName, questions: Vec<LogQuestion>) -> LogReading {
        let answer = match *self.outage.lock().unwrap() {
            Some(why) => Err(LogUnavailable { detail: why.to_owned() }),
            None => Ok(questions.iter().map(|question| self.answer(question)).collect()),
        };
        self.asked.lock().unwrap().push(questions);
        let hold = Arc::clone(&self.hold);
        Box::pin(async move {
            drop(hold.lock().await);
            answer
        })
    }
}

#[derive(Default)]
pub(crate) struct Loops(pub(crate) Mutex<Vec<String>>);

impl Readiness for Loops {
    fn not_ready(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

impl Loops {
    /// Makes the next question panic.
    pub(crate) fn poison(self: &Arc<Self>) {
        let loops = Arc::clone(self);
        let held = std::thread::spawn(move || {
            let _held = loops.0.lock().unwrap();
            panic!("on purpose");
        });
        assert!(held.join().is_err());
    }
}
