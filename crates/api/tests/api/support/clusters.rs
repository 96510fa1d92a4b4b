//! What the clusters and the connections to them say, in the test's hands.

use std::sync::Mutex;

use std::pin::Pin;

use api::{
    CheckedCluster, ClusterAnswer, ClusterKeeper, ClusterLinks, ClusterOps, ClusterSet, ClusterUnavailable,
    KeptFacts, KnownClusters, LinkReport, UnusableCluster,
};
use domain::{
    BatchSettings, Cluster, ClusterIdentity, ClusterName, ImageSettings, Resources, RetrySettings, Violation,
    preflight::Check,
};
use persistence::Store;
use remote::{InstallCredentials, RemoteCommand, TestOnly, TestOnlyAnswer};
use serde_json::Value;

/// The one of the configuration file.
pub(crate) fn cluster() -> Cluster {
    Cluster {
        name: "dgx".parse().unwrap(),
        user: "tao".parse().unwrap(),
        hosts: vec!["login1".to_owned()],
        base_dir: "/lustre/users/tao".parse().unwrap(),
        account: None,
        partitions: Some("polar,grizzly".parse().unwrap()),
        mounts: vec!["/lustre".parse().unwrap()],
        node_local: Vec::new(),
        resources: Resources::packaged().unwrap(),
        max_time_hours: 4.0,
        images: ImageSettings::packaged(&"/lustre/users/tao".parse().unwrap()).unwrap(),
        retries: RetrySettings::default(),
        batch: BatchSettings::default(),
        submit: domain::SubmitSettings::default(),
        rpc_budget: None,
    }
}

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

/// Takes clusters from the database when it is told to, with a rule or two of its own for what is wrong with them.
pub(crate) struct FakeKeeper {
    pub(crate) clusters: KnownClusters,
    store: Store,
}

impl FakeKeeper {
    pub(crate) fn new(store: Store) -> Self {
        let clusters = KnownClusters::default();
        clusters.set(ClusterSet::of_file(vec![cluster()]));
        Self { clusters, store }
    }
}

impl ClusterKeeper for FakeKeeper {
    fn check(&self, name: &ClusterName, settings: &Value) -> Result<CheckedCluster, Vec<Violation>> {
        let text = |key: &str| settings[key].as_str().unwrap_or_default();
        let user =
            text("user").parse().map_err(|_| vec![Violation::new("/user", "invalid", "is no user")])?;
        let base_dir = settings["base_results_dir"].as_str().unwrap_or("/lustre/kept").parse().unwrap();
        let hosts: Vec<String> = settings["hosts"]
            .as_array()
            .unwrap()
            .iter()
            .map(|host| host.as_str().unwrap().to_owned())
            .collect();
        let identity = ClusterIdentity { user, hosts, base_dir };
        let cluster = Cluster {
            name: name.clone(),
            user: identity.user.clone(),
            hosts: identity.hosts.clone(),
            base_dir: identity.base_dir.clone(),
            ..cluster()
        };
        Ok(CheckedCluster { cluster, identity })
    }

    fn refresh(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async {
            let mut set = ClusterSet::of_file(vec![cluster()]);
            for kept in self.store.stored_clusters().await.unwrap() {
                let (revision, incarnation, settings) = (kept.revision, kept.incarnation, kept.settings);
                match self.check(&kept.name, &settings) {
                    Ok(checked) => {
                        let unavailable = (settings["ssh_key"] == "absent").then(|| "no key".to_owned());
                        set.add(checked.cluster, KeptFacts { revision, incarnation, settings, unavailable });
                    }
                    Err(faults) => {
                        set.add_unusable(kept.name, UnusableCluster { revision, settings, faults });
                    }
                }
            }
            self.clusters.set(set);
        })
    }
}
