//! What a cluster's logs and this process's loops say, in the test's hands.

use std::{
    collections::HashMap,
    pin::Pin,
    sync::{Arc, Mutex},
};

use api::{LogBytes, LogRequest, LogSource, LogUnavailable, Readiness};

/// Logs by file name; an outage takes them all away.
#[derive(Default)]
pub(crate) struct FakeLogs {
    pub(crate) files: Mutex<HashMap<&'static str, LogBytes>>,
    pub(crate) outage: Mutex<Option<&'static str>>,
    pub(crate) asked: Mutex<Vec<LogRequest>>,
    /// Whoever holds it holds up every answer.
    pub(crate) hold: tokio::sync::Mutex<()>,
}

impl LogSource for FakeLogs {
    fn read(
        &self,
        request: LogRequest,
    ) -> Pin<Box<dyn Future<Output = Result<Option<LogBytes>, LogUnavailable>> + Send + '_>> {
        let answer = match *self.outage.lock().unwrap() {
            Some(why) => Err(LogUnavailable { detail: why.to_owned() }),
            None => Ok(self.files.lock().unwrap().get(request.paths[0].file_name()).cloned()),
        };
        self.asked.lock().unwrap().push(request);
        Box::pin(async move {
            drop(self.hold.lock().await);
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
