//! Jobs that are larger than their partitions.

use super::*;

/// `nodes` with 8 GPUs each.
fn large(nodes: u32, partitions: &str) -> JobSpec {
    let mut spec = asks(4.0, 8, partitions);
    spec.resources.nodes = nodes;
    spec
}

#[test]
fn more_nodes_than_any_partition_has_are_rejected_with_the_numbers() {
    let limits = limits(Some(reported()));
    let (pointer, code, detail) = one(&large(5, "polar,grizzly"), &limits);
    assert_eq!((pointer.as_str(), code), ("/resources/num_nodes", "node_limit"));
    assert_eq!(
        detail,
        "is 5 nodes with 8 GPUs each; partition polar has 4, partition grizzly has 4 (sinfo, 1970-01-01 00:00 UTC). \
         Request at most 4 nodes"
    );
    assert_eq!(check(&large(4, "polar"), &limits), []);
}

#[test]
fn a_total_that_needs_too_many_nodes_is_rejected_in_gpus() {
    let mut spec = large(125, "polar");
    spec.requested_gpus = Some(1000);
    let (pointer, _, detail) = one(&spec, &limits(Some(reported())));
    assert_eq!(pointer, "/resources/num_gpus");
    assert_eq!(
        detail,
        "is 1000, which needs 125 nodes with 8 GPUs each; partition polar has 4 (sinfo, 1970-01-01 00:00 UTC). Request at \
         most 32 GPUs"
    );
}

#[test]
fn nodes_without_the_gpus_do_not_count_and_down_nodes_do() {
    let mut reported = reported();
    let polar = &mut reported.partitions[0];
    polar.nodes[0].state = "down*".to_owned();
    polar.nodes.push(NodeGroup { gpus: 4, count: 40, ..polar.nodes[0].clone() });
    assert_eq!(check(&large(4, "polar"), &limits(Some(reported.clone()))), []);
    let detail = one(&large(5, "polar"), &limits(Some(reported.clone()))).2;
    assert!(detail.contains("partition polar has 4"), "{detail}");
    let mut half = large(5, "polar");
    half.resources.gpus_per_node = 4;
    assert_eq!(check(&half, &limits(Some(reported))), []);
}

#[test]
fn a_limit_of_the_partition_counts_and_one_that_holds_the_job_is_named() {
    let mut reported = reported();
    reported.partitions[0].max_nodes = Some(2);
    let detail = one(&large(3, "polar"), &limits(Some(reported))).2;
    assert!(detail.contains("partition polar allows 2"), "{detail}");
    assert!(
        detail.ends_with("or only partitions that have them: polar3, polar4, grizzly, long, endless"),
        "{detail}"
    );
}

#[test]
fn a_partition_must_hold_the_nodes_and_allow_the_time() {
    let mut reported = reported();
    reported.partitions[4].nodes[0].count = 2;
    let mut spec = large(4, "polar,long");
    assert_eq!(check(&spec, &limits(Some(reported.clone()))), []);
    spec.resources.time = WallTime::from_hours(24.0).unwrap();
    let detail = one(&spec, &limits(Some(reported))).2;
    assert!(detail.contains("of the partitions that allow 24 hours, partition long has 2"), "{detail}");
    assert!(detail.ends_with("or only partitions that have them: endless"), "{detail}");
}

#[test]
fn an_unknown_size_rejects_nothing() {
    assert_eq!(check(&large(500, "polar"), &limits(None)), []);
    let mut empty = reported();
    empty.partitions[3].nodes.clear();
    assert_eq!(check(&large(500, "polar,grizzly"), &limits(Some(empty))), []);
    let old = ReportedLimits { fresh: false, ..reported() };
    assert_eq!(check(&large(500, "polar"), &limits(Some(old))), [], "the partition may have grown");
}
