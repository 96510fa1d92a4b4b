//! What the clusters and the connections to them say, in the test's hands.

use std::sync::Mutex;

use api::{ClusterAnswer, ClusterLinks, ClusterOps, ClusterUnavailable, LinkReport};
use domain::{ClusterName, preflight::Check};
use slurm::{InstallCredentials, RemoteCommand, TestOnly, TestOnlyAnswer};

/// What the connections say of themselves.
#[derive(Default)]
pub(crate) struct FakeLinks(pub(crate) Mutex<Vec<LinkReport>>);

impl ClusterLinks for FakeLinks {
    fn links(&self, _: &ClusterName) -> Vec<LinkReport> {
        self.0.lock().unwrap().clone()
    }
}

/// A cluster that remembers what it was asked.
#[derive(Default)]
pub(crate) struct FakeOps {
    pub(crate) checks: Mutex<Vec<Check>>,
    pub(crate) outage: Mutex<Option<ClusterUnavailable>>,
    /// What a trial brings.
    pub(crate) trial: Mutex<Option<TestOnlyAnswer>>,
    /// The standard input of what was asked.
    pub(crate) asked: Mutex<Vec<String>>,
}

impl FakeOps {
    fn answer<T>(&self, answer: T) -> Result<T, ClusterUnavailable> {
        self.outage.lock().unwrap().clone().map_or(Ok(answer), Err)
    }
}

impl ClusterOps for FakeOps {
    fn preflight<'a>(&'a self, _: &'a ClusterName) -> ClusterAnswer<'a, Vec<Check>> {
        Box::pin(async { self.answer(self.checks.lock().unwrap().clone()) })
    }

    fn install_credentials<'a>(
        &'a self,
        _: &'a ClusterName,
        command: InstallCredentials,
    ) -> ClusterAnswer<'a, ()> {
        Box::pin(async move {
            self.asked.lock().unwrap().push(String::from_utf8(command.render().stdin).unwrap());
            self.answer(())
        })
    }

    fn test_only<'a>(&'a self, _: &'a ClusterName, command: TestOnly) -> ClusterAnswer<'a, TestOnlyAnswer> {
        self.asked.lock().unwrap().push(String::from_utf8(command.render().stdin).unwrap());
        let nothing = TestOnlyAnswer { script: None, missing: Vec::new(), unknown: Vec::new() };
        let answer = self.trial.lock().unwrap().clone().unwrap_or(nothing);
        Box::pin(async { self.answer(answer) })
    }
}
