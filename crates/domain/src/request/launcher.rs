//! How a job's command becomes processes.

use std::sync::Arc;

use remote::launcher::{self, Accelerate, Bootstrap, DeepSpeed, Mpi, Ray, Rendezvous, Torchrun};
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::{cluster::policy::SubmitSettings, violation::Faults};

const MOST_PROCESSES: u32 = 1024;
const MOST_ARGS: usize = 64;
const LONGEST_ARG: usize = 1000;

/// How the command becomes processes. Each of them runs the command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Launcher {
    Plain {},
    PerNode {},
    Torchrun(Torchrun),
    Accelerate(Accelerate),
    Deepspeed(DeepSpeed),
    Mpi(Mpi),
    Ray(Ray),
}

/// A kind of launcher.
///
/// - `plain`: one process, on the first node.
/// - `per_node`: `tasks_per_node` processes on each node. On several nodes they have `WORLD_SIZE` (the number of nodes), `NODE_RANK`,
///   `NUM_GPU_PER_NODE`, `MASTER_ADDR` and `MASTER_PORT`.
/// - `torchrun`: `torchrun` on each node.
/// - `accelerate`: `accelerate launch` on each node.
/// - `deepspeed`: `DeepSpeed`'s launcher on each node. It needs no SSH between nodes.
/// - `mpi`: `tasks_per_node` processes on each node, which Slurm starts for MPI. They have `RANK`, `LOCAL_RANK` and `WORLD_SIZE`.
/// - `ray`: a Ray cluster on the job's nodes. The command runs once, on the first node, with `RAY_ADDRESS`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema, strum::Display, strum::EnumIter)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[schema(rename_all = "snake_case")]
pub enum LauncherKind {
    Plain,
    PerNode,
    Torchrun,
    Accelerate,
    Deepspeed,
    Mpi,
    Ray,
}

/// A launcher with its settings.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LauncherSettings {
    #[schema(inline)]
    pub kind: LauncherKind,
    /// Of `torchrun`, `accelerate` and `deepspeed`: the processes on each node. Default: one for each GPU.
    #[serde(default, deserialize_with = "whole")]
    pub nproc_per_node: Option<u32>,
    /// Of `torchrun`: how the nodes meet. Default: `c10d`.
    pub rendezvous: Option<Rendezvous>,
    /// Of `torchrun`, `accelerate`, `deepspeed` and `ray`: further options of `torchrun`, `accelerate launch`,
    /// `deepspeed.launcher.launch` or `ray start`, such as `--max-restarts=3`.
    #[schema(max_items = 64)]
    pub args: Option<Vec<String>>,
    /// Of `mpi`: the plugin, as `srun --mpi=list` names it, such as `pmix`. Default: the cluster's `mpi_plugin`, else `MpiDefault` of its Slurm.
    pub plugin: Option<String>,
    /// Of `ray`: what makes the cluster. Default: `steps`.
    pub bootstrap: Option<Bootstrap>,
}

/// A whole number, which some clients write as `8.0`.
fn whole<'de, D: Deserializer<'de>>(input: D) -> Result<Option<u32>, D::Error> {
    let Some(number) = Option::<f64>::deserialize(input)? else { return Ok(None) };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the comparison finds what was lost"
    )]
    let whole = number as u32;
    if f64::from(whole).total_cmp(&number).is_eq() {
        Ok(Some(whole))
    } else {
        Err(D::Error::custom(format_args!("{number} is no whole number")))
    }
}

/// A launcher in a request: its kind, or an object with the kind and its settings.
#[derive(Debug, ToSchema)]
#[serde(untagged)]
pub enum LauncherBody {
    /// Its kind, such as `torchrun`.
    Kind(String),
    /// With its settings.
    Settings(LauncherSettings),
}

impl Launcher {
    /// The launcher of a request. `at`: its place.
    pub(super) fn from_request(body: &Value, at: &str, faults: &mut Faults) -> Option<Self> {
        let body = if let Value::String(kind) = body { json!({"kind": kind}) } else { body.clone() };
        match serde_json::from_value::<LauncherSettings>(body) {
            Ok(settings) => Some(settings.launcher(at, faults)),
            Err(error) => {
                let advice = "write a kind such as \"torchrun\", or an object with `kind` and its settings";
                faults.add(at, "invalid", format_args!("is not a launcher ({error}); {advice}"));
                None
            }
        }
    }

    /// Whether it starts the processes of a node itself, and so needs one task there.
    pub(super) fn is_one_task(&self) -> bool {
        match self {
            Self::Torchrun(_) | Self::Accelerate(_) | Self::Deepspeed(_) | Self::Ray(_) => true,
            Self::Plain {} | Self::PerNode {} | Self::Mpi(_) => false,
        }
    }

    /// Whether it would end programs of other jobs on its nodes.
    pub(super) fn needs_exclusive_nodes(&self) -> bool {
        matches!(self, Self::Ray(Ray { bootstrap: Bootstrap::SymmetricRun, .. }))
    }

    /// What the cluster decides unless the job does.
    pub(super) fn use_defaults(&mut self, of_cluster: &SubmitSettings) {
        if let Self::Mpi(Mpi { plugin }) = self {
            *plugin = plugin.take().or_else(|| of_cluster.mpi_plugin.clone());
        }
    }

    /// What the batch script does for it.
    pub(crate) fn of_script(&self) -> Arc<dyn launcher::Launcher> {
        match self.clone() {
            Self::Plain {} => Arc::new(launcher::Plain),
            Self::PerNode {} => Arc::new(launcher::PerNode),
            Self::Torchrun(torchrun) => Arc::new(torchrun),
            Self::Accelerate(accelerate) => Arc::new(accelerate),
            Self::Deepspeed(deepspeed) => Arc::new(deepspeed),
            Self::Mpi(mpi) => Arc::new(mpi),
            Self::Ray(ray) => Arc::new(ray),
        }
    }
}

impl LauncherSettings {
    fn launcher(mut self, at: &str, faults: &mut Faults) -> Launcher {
        self.check(at, faults);
        let mut args = || self.args.take().unwrap_or_default();
        let mut nproc_per_node = || self.nproc_per_node.take();
        let launcher = match self.kind {
            LauncherKind::Plain => Launcher::Plain {},
            LauncherKind::PerNode => Launcher::PerNode {},
            LauncherKind::Torchrun => Launcher::Torchrun(Torchrun {
                nproc_per_node: nproc_per_node(),
                rendezvous: self.rendezvous.take().unwrap_or_default(),
                args: args(),
            }),
            LauncherKind::Accelerate => {
                Launcher::Accelerate(Accelerate { nproc_per_node: nproc_per_node(), args: args() })
            }
            LauncherKind::Deepspeed => {
                Launcher::Deepspeed(DeepSpeed { nproc_per_node: nproc_per_node(), args: args() })
            }
            LauncherKind::Mpi => {
                let plugin = self.plugin.take();
                let plugin = plugin.and_then(|word| faults.parse(&format!("{at}/plugin"), &word));
                Launcher::Mpi(Mpi { plugin })
            }
            LauncherKind::Ray => {
                Launcher::Ray(Ray { bootstrap: self.bootstrap.take().unwrap_or_default(), args: args() })
            }
        };
        // What is left belongs to other launchers.
        let left = [
            ("nproc_per_node", self.nproc_per_node.is_some()),
            ("rendezvous", self.rendezvous.is_some()),
            ("args", self.args.is_some()),
            ("plugin", self.plugin.is_some()),
            ("bootstrap", self.bootstrap.is_some()),
        ];
        for (field, _) in left.iter().filter(|(_, is_left)| *is_left) {
            faults.add(
                format!("{at}/{field}"),
                "contradiction",
                format_args!("is no setting of `{}`", self.kind),
            );
        }
        launcher
    }

    fn check(&self, at: &str, faults: &mut Faults) {
        if let Some(number) = self.nproc_per_node {
            faults.within(&format!("{at}/nproc_per_node"), number, 1..=MOST_PROCESSES);
        }
        let args = self.args.as_deref().unwrap_or_default();
        if args.len() > MOST_ARGS {
            faults.add(format!("{at}/args"), "too_many", format_args!("must have at most {MOST_ARGS} words"));
        }
        for (place, arg) in args.iter().enumerate() {
            if arg.is_empty() || arg.len() > LONGEST_ARG || arg.contains(char::is_control) {
                let detail = format_args!("must be 1 to {LONGEST_ARG} bytes without control characters");
                faults.add(format!("{at}/args/{place}"), "invalid", detail);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    fn read(body: &Value) -> (Option<Launcher>, Vec<String>) {
        let mut faults = Faults::default();
        let launcher = Launcher::from_request(body, "/launcher", &mut faults);
        (launcher, faults.0.into_iter().map(|fault| fault.pointer).collect())
    }

    #[test]
    fn a_name_is_a_launcher_without_settings() {
        let torchrun = Torchrun { nproc_per_node: None, rendezvous: Rendezvous::C10d, args: vec![] };
        let torchrun = Launcher::Torchrun(torchrun);
        assert_eq!(read(&json!("torchrun")), (Some(torchrun.clone()), vec![]));
        assert_eq!(read(&json!({"kind": "torchrun"})), (Some(torchrun), vec![]));
        for kind in ["plain", "per_node", "accelerate", "deepspeed", "mpi", "ray"] {
            let (launcher, faults) = read(&json!(kind));
            assert!(launcher.is_some() && faults.is_empty(), "{kind}: {faults:?}");
        }
        let spelled = |number: Value| read(&json!({"kind": "deepspeed", "nproc_per_node": number}));
        assert_eq!(spelled(json!(8.0)), spelled(json!(8)));
    }

    #[test]
    fn the_plugin_of_the_job_comes_before_that_of_the_cluster() {
        let of_cluster = SubmitSettings { mpi_plugin: "pmix".parse().ok(), ..SubmitSettings::default() };
        let plugin = |body: Value| {
            let mut launcher = read(&body).0.unwrap();
            launcher.use_defaults(&of_cluster);
            serde_json::to_value(launcher).unwrap()["plugin"].clone()
        };
        assert_eq!(plugin(json!("mpi")), "pmix");
        assert_eq!(plugin(json!({"kind": "mpi", "plugin": "pmi2"})), "pmi2");
        assert_eq!(plugin(json!("plain")), Value::Null);
    }

    #[test_case(&json!("pdsh"), "/launcher" ; "another kind")]
    #[test_case(&json!({"kind": "ray", "bootstrap": "ssh"}), "/launcher" ; "another bootstrap")]
    #[test_case(&json!({"kind": "ray", "args": [""]}), "/launcher/args/0" ; "an empty word")]
    #[test_case(&json!({"kind": "plain", "args": []}), "/launcher/args" ; "a setting of another launcher")]
    #[test_case(&json!({"nproc_per_node": 2}), "/launcher" ; "no kind")]
    #[test_case(&json!(3), "/launcher" ; "a number")]
    #[test_case(&json!({"kind": "torchrun", "nproc_per_node": 0}), "/launcher/nproc_per_node" ; "no process")]
    #[test_case(&json!({"kind": "torchrun", "nproc_per_node": 1.5}), "/launcher" ; "half a process")]
    #[test_case(&json!({"kind": "torchrun", "nproc_per_node": -1}), "/launcher" ; "less than no process")]
    #[test_case(&json!({"kind": "torchrun", "args": ["ok", "a\nb"]}), "/launcher/args/1" ; "two lines")]
    #[test_case(&json!({"kind": "mpi", "plugin": "pmix; rm"}), "/launcher/plugin" ; "no plugin")]
    fn what_is_no_launcher_is_refused_with_its_place(body: &Value, pointer: &str) {
        assert_eq!(read(body).1, [pointer]);
    }
}
