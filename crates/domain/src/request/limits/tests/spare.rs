//! How many nodes a job can exclude.

use test_case::test_case;

use super::*;

fn partition(name: &str, groups: &[(&str, u32, u32)]) -> PartitionInfo {
    let group = |(state, count, gpus): &(&str, u32, u32)| NodeGroup {
        state: (*state).to_owned(),
        count: *count,
        cpus: 64,
        memory_mib: 1,
        gpus: *gpus,
        gpu_types: BTreeSet::new(),
        gres: None,
        features: None,
        some_have_more: false,
    };
    PartitionInfo {
        name: name.parse().unwrap(),
        is_default: name == "polar",
        availability: "up".to_owned(),
        time_limit: None,
        default_time: None,
        max_nodes: None,
        allow_accounts: None,
        associations: None,
        nodes: groups.iter().map(group).collect(),
    }
}

fn reported() -> ReportedLimits {
    let partitions = vec![
        partition(
            "polar",
            &[("idle", 2, 8), ("mixed", 1, 8), ("drained", 3, 8), ("idle*", 4, 8), ("idle", 9, 0)],
        ),
        partition("large", &[("allocated", 40, 8), ("down", 2, 8)]),
        partition("lone", &[("idle", 1, 8)]),
    ];
    ReportedLimits { partitions, all_must_allow: false, at: DateTime::UNIX_EPOCH, fresh: true }
}

fn spare(reported: &ReportedLimits, nodes: u32, list: &str) -> Option<usize> {
    let mut spec = command_job().spec;
    spec.resources.nodes = nodes;
    spec.partitions = Some(list).filter(|list| !list.is_empty()).map(|list| list.parse().unwrap());
    reported.spare_nodes(&spec)
}

#[test_case(1, "lone" => Some(0) ; "the only node")]
#[test_case(3, "polar" => Some(0) ; "all nodes that work and have GPUs")]
#[test_case(1, "polar" => Some(2))]
#[test_case(9, "polar" => Some(0) ; "more than the partition has")]
#[test_case(3, "polar,large" => Some(37) ; "it runs in one of its partitions")]
#[test_case(1, "" => Some(2) ; "in the default one if it names none")]
#[test_case(1, "nosuch" => None)]
fn the_spare_nodes_are_those_of_the_best_partition(nodes: u32, list: &str) -> Option<usize> {
    spare(&reported(), nodes, list)
}

#[test_case(1, 0, "polar" => true)]
#[test_case(3, 0, "polar" => true ; "all that work")]
#[test_case(4, 0, "polar" => false ; "more than work")]
#[test_case(3, 1, "polar" => false ; "one of those that work is excluded")]
#[test_case(4, 0, "polar,large" => true ; "one partition is enough")]
#[test_case(1, 0, "nosuch" => false ; "unknown")]
fn busy_nodes_work_and_others_do_not(nodes: u32, excluded: usize, list: &str) -> bool {
    let mut job = crate::fixtures::submitted_job();
    job.spec.resources.nodes = nodes;
    job.spec.partitions = Some(list.parse().unwrap());
    job.attempt.as_mut().unwrap().excluded = vec!["node01".parse().unwrap(); excluded];
    let known = reported();
    assert!(!ReportedLimits { fresh: false, ..known.clone() }.has_nodes_for(&job));
    known.has_nodes_for(&job)
}

#[test]
fn nodes_that_the_owner_excludes_are_not_spare() {
    let mut job = crate::fixtures::submitted_job();
    job.spec.partitions = Some("polar".parse().unwrap());
    job.spec.options.exclude = Some("node[01-02]".parse().unwrap());
    assert_eq!(reported().spare_nodes(&job.spec), Some(0));
    assert!(reported().has_nodes_for(&job));
    job.spec.options.exclude = Some("node[01-03]".parse().unwrap());
    assert!(!reported().has_nodes_for(&job));
}

#[test]
fn an_old_report_does_not_count() {
    assert_eq!(spare(&ReportedLimits { fresh: false, ..reported() }, 1, "lone"), None);
}
