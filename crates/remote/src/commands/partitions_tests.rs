use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use slurm::{TimeLimit, WallTime};

const SINFO: [&str; 2] = [
    include_str!("../../tests/fixtures/22.05/sinfo.txt"),
    include_str!("../../tests/fixtures/24.11/sinfo.txt"),
];
const SHOW: [&str; 2] = [
    include_str!("../../tests/fixtures/22.05/partitions.txt"),
    include_str!("../../tests/fixtures/24.11/partitions.txt"),
];

fn parse(enforce: &str, show: &str, rows: &str) -> Result<PartitionsAnswer, ParseError> {
    let mut lines = vec![format!("ENFORCE {enforce}")];
    lines.extend(show.lines().map(|line| format!("SHOW {line}")));
    lines.extend(rows.lines().map(|line| format!("ROW {line}")));
    lines.push(format!("END {}\n", lines.len()));
    let text = lines.join("\n");
    Partitions.parse(&RawOutput { stdout: text.into_bytes(), ..RawOutput::default() })
}

/// The answer with accounting: its words of enforcement, and the rows of sacctmgr.
fn with_accounting(enforce: &str, rows: &[&str], sinfo: &str) -> PartitionsAnswer {
    let mut lines = vec!["CLUSTER dgx".to_owned(), format!("ACCOUNTS {enforce}")];
    lines.extend(rows.iter().map(|row| format!("ASSOC {row}")));
    lines.extend(sinfo.lines().map(|line| format!("ROW {line}")));
    lines.push(format!("END {}\n", lines.len()));
    let text = lines.join("\n");
    Partitions.parse(&RawOutput { stdout: text.into_bytes(), ..RawOutput::default() }).unwrap()
}

fn hours(hours: u32) -> Option<TimeLimit> {
    WallTime::from_minutes(hours * 60).map(TimeLimit::Limited)
}

fn named<'a>(answer: &'a PartitionsAnswer, name: &str) -> &'a PartitionInfo {
    answer.partitions.iter().find(|partition| partition.name.as_str() == name).unwrap()
}

#[test]
fn what_both_versions_print_is_read_whole() {
    for (sinfo, show) in SINFO.into_iter().zip(SHOW) {
        let answer = parse("ALL", show, sinfo).unwrap();
        assert_eq!(answer.dropped, 0);
        assert!(answer.all_must_allow);
        let (polar, long, cpu) = (named(&answer, "polar"), named(&answer, "long"), named(&answer, "cpu"));
        assert!(polar.is_default && !long.is_default);
        assert_eq!((polar.time_limit, long.time_limit, cpu.time_limit), (hours(4), hours(168), hours(24)));
        assert_eq!((polar.default_time, long.default_time), (hours(4), hours(24)));
        assert_eq!((polar.node_count(), polar.most_gpus_per_node()), (4, Some(8)));
        assert_eq!(
            (cpu.most_gpus_per_node(), cpu.nodes[0].cpus, cpu.nodes[0].memory_mib),
            (Some(0), 64, 256_000)
        );
        assert_eq!((polar.max_nodes, polar.allow_accounts.as_ref()), (None, None));
    }
}

#[test]
fn nodes_are_counted_by_slurms_own_words() {
    let answer = parse("", SHOW[0], SINFO[0]).unwrap();
    let states = BTreeMap::from([("allocated", 1), ("down*", 1), ("drained", 1), ("mixed", 1)]);
    assert_eq!(named(&answer, "polar").nodes_by_state(), states);
    assert!(!answer.all_must_allow, "a site that does not say it");
}

#[test]
fn a_hidden_partition_without_limit_and_one_without_nodes_are_read_too() {
    let answer = parse("NO", SHOW[0], SINFO[0]).unwrap();
    let restricted = named(&answer, "restricted");
    assert_eq!((restricted.time_limit, restricted.default_time), (Some(TimeLimit::Unlimited), None));
    assert_eq!((restricted.availability.as_str(), restricted.max_nodes), ("drain", Some(1)));
    assert_eq!(restricted.allow_accounts, Some(vec!["other".to_owned(), "team".to_owned()]));
    let empty = named(&answer, "empty");
    assert_eq!((empty.node_count(), empty.most_gpus_per_node()), (0, None));
    assert!(empty.nodes_by_state().is_empty());
}

#[test]
fn features_and_resources_are_read() {
    let rows = "gpu*|up|4:00:00|n/a|1|idle|64|512000+|gpu:a100:8(S:0-1),mps:800|a100,nvlink\n\
                gpu*|up|4:00:00|n/a|2|idle|64|512000|(null)|(null)";
    let answer = parse("ANY", "", rows).unwrap();
    let [with, without] = answer.partitions[0].nodes.as_slice() else { panic!("{answer:?}") };
    let texts = |set: &Option<std::collections::BTreeSet<String>>| {
        set.clone().unwrap().into_iter().collect::<Vec<_>>()
    };
    assert_eq!(texts(&with.features), ["a100", "nvlink"]);
    assert_eq!(with.gres, Some(BTreeMap::from([("gpu:a100".to_owned(), 8), ("mps".to_owned(), 800)])));
    assert!(with.some_have_more && !without.some_have_more);
    assert_eq!((texts(&without.features), &without.gres), (vec![], &Some(BTreeMap::new())));
}

#[test]
fn the_lists_of_a_row_that_was_cut_are_not_known() {
    let row = format!("gpu*|up|4:00:00|n/a|1|idle|64|512000|gpu:8|{}", "feature,".repeat(500));
    let answer = parse("ANY", "", &row[..4000]).unwrap();
    let group = &answer.partitions[0].nodes[0];
    assert_eq!((group.gpus, &group.gres, &group.features), (8, &None, &None));
}

#[test]
fn each_partition_has_the_accounts_of_its_own_cluster() {
    let rows = ["dgx|team||normal,high", "dgx|extra|polar|low", "other|far||normal", "sacctmgr: what?"];
    let answer = with_accounting(
        "associations,qos",
        &rows,
        "polar*|up|1|1|1|idle|1|1|(null)\ncpu|up|1|1|1|idle|1|1|(null)",
    );
    let accounts = |name: &str| {
        let found = named(&answer, name).associations.clone().unwrap();
        assert!(found.enforced && found.qos_enforced);
        found.accounts.into_keys().collect::<Vec<_>>()
    };
    assert_eq!(
        (accounts("polar"), accounts("cpu")),
        (vec!["extra".to_owned(), "team".to_owned()], vec!["team".to_owned()])
    );
}

#[test]
fn a_cluster_without_accounting_has_no_associations() {
    for (enforce, rows) in [("none", &[][..]), ("", &["dgx|team||normal"]), ("all", &["far|team||normal"])] {
        let answer = with_accounting(enforce, rows, "polar*|up|1|1|1|idle|1|1|(null)");
        assert_eq!(answer.partitions[0].associations, None, "{enforce}");
    }
}

#[test]
fn a_row_that_cannot_be_read_costs_only_itself() {
    let rows = "polar*|up|4:00:00|n/a|1|idle|64+|512000+|gpu:a100:8(S:0,1)\n\
                bad name|up|4:00:00|n/a|1|idle|64|1|gpu:8\nx|up\ny|up|infinite|n/a|many|idle|1|1|(null)";
    let answer = parse("ANY", "PartitionName=polar MaxNodes=x\nnonsense", rows).unwrap();
    assert_eq!((answer.partitions.len(), answer.dropped), (1, 3));
    assert_eq!(answer.partitions[0].most_gpus_per_node(), Some(8));
}

#[test]
fn an_answer_without_any_partition_is_none() {
    for rows in ["", "polar*|up"] {
        let error = parse("ALL", "PartitionName=polar MaxNodes=4", rows).unwrap_err();
        assert!(error.to_string().contains("any partition"), "{error}");
    }
}

#[test]
fn a_controller_that_does_not_answer_is_a_failure() {
    let stdout = b"REFUSED 1 c2xpbmZvOiBlcnJvcjogVW5hYmxlIHRvIGNvbnRhY3Qgc2x1cm0gY29udHJvbGxlciAoY29ubmVjdCBmYWlsdXJlKQ==\nEND 1\n";
    let raw = RawOutput { stdout: stdout.to_vec(), ..RawOutput::default() };
    let error = Partitions.parse(&raw).unwrap_err();
    assert!(error.to_string().contains("connect failure"), "{error}");
}

proptest! {
    #[test]
    fn no_row_makes_the_parser_panic(rows in "[-a-z0-9*|:=(),\n]{0,300}", show in "[-A-Za-z0-9=, \n]{0,300}") {
        let _ = parse("ALL", &show, &rows);
    }
}
