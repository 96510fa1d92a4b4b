mod nodes;
mod options;
mod spare;

use std::collections::BTreeSet;

use chrono::DateTime;
use slurm::{NodeGroup, WallTime};

use super::*;
use crate::fixtures::command_job;

fn partition(name: &str, hours: Option<f64>, gpus: u32) -> PartitionInfo {
    let limit =
        hours.map_or(TimeLimit::Unlimited, |hours| TimeLimit::Limited(WallTime::from_hours(hours).unwrap()));
    let nodes = NodeGroup {
        state: "idle".to_owned(),
        count: 4,
        cpus: 64,
        memory_mib: 1,
        gpus,
        gpu_types: BTreeSet::new(),
        gres: None,
        features: None,
        some_have_more: false,
    };
    PartitionInfo {
        name: name.parse().unwrap(),
        is_default: name == "polar",
        availability: "up".to_owned(),
        time_limit: Some(limit),
        default_time: None,
        max_nodes: None,
        allow_accounts: None,
        associations: None,
        nodes: vec![nodes],
    }
}

fn reported() -> ReportedLimits {
    let partitions = vec![
        partition("polar", Some(4.0), 8),
        partition("polar3", Some(4.0), 8),
        partition("polar4", Some(8.0), 8),
        partition("grizzly", Some(8.0), 8),
        partition("long", Some(168.0), 8),
        partition("endless", None, 8),
        partition("cpu", Some(24.0), 0),
    ];
    ReportedLimits { partitions, all_must_allow: false, at: DateTime::UNIX_EPOCH, fresh: true }
}

fn limits(reported: Option<ReportedLimits>) -> PartitionLimits {
    PartitionLimits { max_time_hours: 4.0, reported }
}

fn asks(hours: f64, gpus: u32, partitions: &str) -> JobSpec {
    let mut spec = command_job().spec;
    spec.resources.time = WallTime::from_hours(hours).unwrap();
    spec.resources.gpus_per_node = gpus;
    spec.partitions = Some(partitions).filter(|list| !list.is_empty()).map(|list| list.parse().unwrap());
    spec
}

/// The pointer, the code and the detail of the only violation.
fn one(spec: &JobSpec, limits: &PartitionLimits) -> (String, &'static str, String) {
    let mut found = check(spec, limits);
    assert_eq!(found.len(), 1, "{found:?}");
    let Violation { pointer, code, detail } = found.remove(0);
    (pointer, code, detail)
}

#[test]
fn a_time_above_every_listed_limit_is_rejected_with_the_limits_source() {
    let limits = limits(Some(reported()));
    let (pointer, code, detail) = one(&asks(12.0, 4, "polar,polar4"), &limits);
    assert_eq!((pointer.as_str(), code), ("/resources/time_hours", "time_limit"));
    assert_eq!(
        detail,
        "is 12 hours; partition polar allows 4, partition polar4 allows 8 (sinfo, 1970-01-01 00:00 UTC). \
         Request less, or only partitions that allow it: long, endless, cpu"
    );
}

#[test]
fn a_time_that_one_listed_partition_allows_is_accepted_unless_all_must_allow() {
    let mut reported = reported();
    assert_eq!(check(&asks(12.0, 4, "polar,long"), &limits(Some(reported.clone()))), []);
    reported.all_must_allow = true;
    let (_, _, detail) = one(&asks(12.0, 4, "polar,long"), &limits(Some(reported.clone())));
    assert!(
        detail.contains("partition polar allows 4 (sinfo") && !detail.contains("long allows"),
        "{detail}"
    );
    assert_eq!(check(&asks(12.0, 4, "long,endless"), &limits(Some(reported))), []);
}

#[test]
fn a_job_may_reach_its_limit() {
    assert_eq!(check(&asks(8.0, 8, "polar4"), &limits(Some(reported()))), []);
    assert_eq!(check(&asks(4.0, 8, "polar"), &limits(None)), []);
}

#[test]
fn the_configuration_limits_what_the_cluster_did_not_report() {
    let (_, code, detail) = one(&asks(12.0, 4, "long"), &limits(None));
    assert_eq!(code, "time_limit");
    assert!(detail.contains("allows at most 4 (max_time_hours)"), "{detail}");
    let mut unclear = reported();
    unclear.partitions[4].time_limit = None;
    assert!(one(&asks(12.0, 4, "long"), &limits(Some(unclear))).2.contains("max_time_hours"));
}

#[test]
fn the_packaged_partitions_are_limited_even_if_they_allow_more() {
    let mut reported = reported();
    reported.partitions.iter_mut().for_each(|partition| partition.time_limit = Some(TimeLimit::Unlimited));
    for list in ["polar,polar3,polar4,grizzly", "grizzly,polar4,polar3,polar"] {
        let (_, _, detail) = one(&asks(5.0, 4, list), &limits(Some(reported.clone())));
        assert!(detail.contains("max_time_hours"), "{detail}");
    }
    assert_eq!(check(&asks(5.0, 4, "polar,polar3"), &limits(Some(reported))), []);
}

#[test]
fn an_unknown_partition_is_rejected_while_the_list_is_fresh() {
    let mut reported = reported();
    let (pointer, code, detail) = one(&asks(1.0, 4, "polar,nosuch"), &limits(Some(reported.clone())));
    assert_eq!((pointer.as_str(), code), ("/backend_details/partition", "unknown_partition"));
    assert!(detail.contains("`nosuch`") && detail.contains("polar, polar3"), "{detail}");
    reported.fresh = false;
    assert_eq!(check(&asks(1.0, 4, "polar,nosuch"), &limits(Some(reported))), []);
}

#[test]
fn more_gpus_than_any_node_has_are_rejected() {
    let mut asked = asks(1.0, 16, "polar,cpu");
    let (pointer, code, detail) = one(&asked, &limits(Some(reported())));
    assert_eq!((pointer.as_str(), code), ("/resources/gpus_per_node", "gpu_limit"));
    asked.requested_gpus = Some(16);
    assert_eq!(one(&asked, &limits(Some(reported()))).0, "/resources/num_gpus");
    assert!(detail.contains("16 GPUs on each node; no node of polar, cpu has more than 8"), "{detail}");
    assert_eq!(one(&asks(1.0, 1, "cpu"), &limits(Some(reported()))).1, "gpu_limit");
    assert_eq!(check(&asks(1.0, 8, "polar,cpu"), &limits(Some(reported()))), []);
    let mut empty = reported();
    empty.partitions[6].nodes.clear();
    assert_eq!(
        check(&asks(1.0, 1, "cpu"), &limits(Some(empty))),
        [],
        "a partition without nodes says nothing"
    );
}

#[test]
fn a_job_without_a_list_uses_the_default_partition() {
    let (_, _, detail) = one(&asks(5.0, 4, ""), &limits(Some(reported())));
    assert!(detail.contains("partition polar allows 4"), "{detail}");
    let mut nowhere = reported();
    nowhere.partitions[0].is_default = false;
    assert!(one(&asks(5.0, 4, ""), &limits(Some(nowhere))).2.contains("max_time_hours"));
}
