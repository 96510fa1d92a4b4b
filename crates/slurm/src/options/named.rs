//! Options of sbatch that have no field of their own.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{names::text_type::word_type, options::text::OptionText};

word_type!(
    /// The name of a long option without its dashes: `[a-z][a-z0-9-]*`.
    OptionName, "option name", "1 to 64 of a-z 0-9 -, starting with a letter, such as mem-bind", max 64,
    |text| {
        text.starts_with(|c: char| c.is_ascii_lowercase())
            && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
    }
);

impl OptionName {
    /// How the service uses this option.
    pub fn ownership(&self) -> Ownership {
        let name = self.as_str();
        // Pyxis and Slurm would run the batch script itself in a container.
        if name.starts_with("container") {
            return Ownership::Service { may_drop: false, instead: "image" };
        }
        if let Some((_, may_drop, instead)) = OWNED.iter().find(|(owned, ..)| *owned == name) {
            return Ownership::Service { may_drop: *may_drop, instead };
        }
        // sbatch takes the beginning of a name for the name (getopt_long(3)), unless it is a name itself.
        match OWNED.iter().find(|(owned, ..)| owned.starts_with(name) && name != "gpus") {
            Some((_, _, instead)) => Ownership::Service { may_drop: false, instead },
            None => Ownership::Caller,
        }
    }
}

/// Who decides about an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ownership {
    /// A request may set it.
    Caller,
    /// The service sets it from other fields, or never.
    Service {
        /// Whether a request may leave its line out.
        may_drop: bool,
        /// What to use instead.
        instead: &'static str,
    },
}

/// The value of an option.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OptionValue {
    /// `--name`.
    Flag,
    /// `--name=value`.
    Text(OptionText),
    /// The line is left out, even if it is a default.
    Drop,
}

impl fmt::Display for OptionValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag => f.write_str("true"),
            Self::Text(text) => fmt::Display::fmt(text, f),
            Self::Drop => f.write_str("false"),
        }
    }
}

/// Options that the service sets from other fields, or that would change what the service relies on: its names, its files, its
/// ids and its signals. With each: whether a site may have it left out, and what to use instead.
const OWNED: &[(&str, bool, &str)] = &[
    ("account", true, "backend_details.account"),
    ("array", false, "the field `array`"),
    ("begin", false, "backend_details.begin"),
    ("chdir", false, "`cd` in the command"),
    ("cluster", false, "backend_details.cluster_name"),
    ("cluster-constraint", false, "backend_details.cluster_name"),
    ("clusters", false, "backend_details.cluster_name"),
    ("comment", true, "backend_details.comment"),
    ("constraint", true, "resources.constraint"),
    ("cpus-per-task", true, "resources.cpus_per_task"),
    ("deadline", false, "backend_details.deadline"),
    ("dependency", false, "the field `needs`"),
    ("error", false, "GET /jobs/{id}/logs"),
    ("exclude", true, "resources.exclude"),
    ("exclusive", true, "resources.exclusive"),
    ("export", false, "docker_env_vars, or the cluster's setting sbatch_export"),
    ("export-file", false, "docker_env_vars"),
    ("get-user-env", false, "docker_env_vars"),
    ("gid", false, "the cluster's user"),
    ("gpus-per-node", true, "resources.gpus_per_node"),
    ("gres", true, "resources.gres, resources.gpus_per_node and resources.gpu_type"),
    ("help", false, "the manual of sbatch"),
    ("hold", false, "backend_details.begin"),
    ("ignore-pbs", false, "fields of the request: the script has no other directives"),
    ("input", false, "the command"),
    ("job-name", false, "name: the service finds its jobs by their names in Slurm"),
    ("kill-on-invalid-dep", false, "the field `needs`"),
    ("licenses", true, "resources.licenses"),
    ("mem", true, "resources.memory"),
    ("mem-per-cpu", true, "resources.memory.per_cpu"),
    ("mem-per-gpu", true, "resources.memory.per_gpu"),
    ("nice", true, "backend_details.nice"),
    ("no-kill", false, "use_requeue"),
    ("no-requeue", false, "use_requeue"),
    ("nodefile", false, "resources.nodelist"),
    ("nodelist", true, "resources.nodelist"),
    ("nodes", false, "resources.num_nodes"),
    ("ntasks", true, "resources.num_nodes and resources.tasks_per_node"),
    ("ntasks-per-node", true, "resources.tasks_per_node"),
    ("open-mode", false, "GET /jobs/{id}/logs"),
    ("output", false, "GET /jobs/{id}/logs"),
    ("parsable", false, "the answer of the service, which has the Slurm id"),
    ("partition", true, "backend_details.partition"),
    ("qos", true, "backend_details.qos"),
    ("quiet", false, "the answer of the service"),
    ("requeue", false, "use_requeue"),
    ("reservation", true, "backend_details.reservation"),
    ("signal", true, "the cluster's setting warning_seconds"),
    ("switches", true, "resources.switches"),
    ("test-only", false, "POST /jobs/validate?live=true"),
    ("time", false, "resources.time_hours"),
    ("uid", false, "the cluster's user"),
    ("usage", false, "the manual of sbatch"),
    ("verbose", false, "POST /jobs/validate?live=true"),
    ("version", false, "POST /clusters/{name}/preflight"),
    ("wait", false, "GET /jobs/{id}/status?wait=30"),
    ("wrap", false, "command"),
];

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    #[test_case("mem-bind" => true)]
    #[test_case("x" => true)]
    #[test_case("" => false)]
    #[test_case("-x" => false ; "a dash")]
    #[test_case("Mem" => false ; "a capital")]
    #[test_case("a=b" => false ; "a value")]
    #[test_case("a b" => false ; "two words")]
    #[test_case("a\nb" => false ; "two lines")]
    fn a_name_is_a_long_option(text: &str) -> bool {
        text.parse::<OptionName>().is_ok()
    }

    #[test]
    fn the_list_is_sorted_and_of_names() {
        assert!(OWNED.is_sorted_by(|(one, ..), (other, ..)| one < other));
        assert!(OWNED.iter().all(|(name, ..)| name.parse::<OptionName>().is_ok()));
    }

    #[test]
    fn what_the_service_owns_says_what_to_use() {
        let ownership = |name: &str| name.parse::<OptionName>().unwrap().ownership();
        assert_eq!(ownership("hint"), Ownership::Caller);
        assert_eq!(
            ownership("time"),
            Ownership::Service { may_drop: false, instead: "resources.time_hours" }
        );
        assert!(matches!(ownership("mem"), Ownership::Service { may_drop: true, .. }));
        assert!(matches!(ownership("container-image"), Ownership::Service { may_drop: false, .. }));
    }

    #[test]
    fn the_beginning_of_an_owned_name_is_owned_too() {
        let ownership = |name: &str| name.parse::<OptionName>().unwrap().ownership();
        for name in ["job-nam", "outp", "o", "tim", "depend"] {
            assert!(matches!(ownership(name), Ownership::Service { may_drop: false, .. }), "{name}");
        }
        for name in ["gpus", "mem-bind", "time-min", "gpus-per-task", "wait-all-nodes"] {
            assert_eq!(ownership(name), Ownership::Caller, "{name}");
        }
    }
}
