use slurm::{Memory, OptionText};
use test_case::test_case;

use super::*;
use crate::script::plain::plain_directives;

const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn base() -> Directives {
    Directives { cpus_per_task: 2, warning_seconds: 120, ..plain_directives("tao-job-1", 60) }
}

fn lines(directives: &Directives) -> Vec<String> {
    let mut out = String::new();
    directives.render(&"/state".parse().unwrap(), &mut out).unwrap();
    out.lines().map(|line| line.strip_prefix("#SBATCH --").unwrap().to_owned()).collect()
}

fn has(directives: &Directives, line: &str) -> bool {
    lines(directives).iter().any(|one| one == line)
}

#[test]
fn every_option_is_one_line_and_one_word() {
    let moment = |text: &str| {
        let created = slurm::timestamp(Some(1))?;
        text.parse::<slurm::Moment>().ok()?.for_sbatch(created, created)
    };
    let directives = Directives {
        nodes: 2,
        tasks_per_node: 4,
        gpus_per_node: 2,
        begin: moment("now+1hour"),
        deadline: moment("2026-12-01T08:00"),
        options: SubmitOptions {
            account: Some("vision".parse().unwrap()),
            qos: Some("high".parse().unwrap()),
            reservation: Some("course".parse().unwrap()),
            nice: Some(100),
            comment: Some("idle-gpu exempt".parse().unwrap()),
            memory: Some(MemoryRequest::PerCpu("4G".parse().unwrap())),
            gpu_type: Some("a100".parse().unwrap()),
            gres: vec!["nvme:1".parse().unwrap()],
            constraint: Some("a100&nvlink".parse().unwrap()),
            nodelist: Some("node[01-02]".parse().unwrap()),
            exclude: Some("node03".parse().unwrap()),
            licenses: Some("matlab:2".parse().unwrap()),
            switches: Some("1@00:30:00".parse().unwrap()),
            others: [
                ("hint".parse().unwrap(), OptionValue::Text("nomultithread".parse().unwrap())),
                ("contiguous".parse().unwrap(), OptionValue::Flag),
            ]
            .into(),
        },
        ..base()
    };
    insta::assert_snapshot!(lines(&directives).join("\n"), @r#"
    job-name=tao-job-1
    account=vision
    qos=high
    reservation=course
    nice=100
    begin=now+3600seconds
    deadline=2026-12-01T08:00:00
    nodes=2
    ntasks-per-node=4
    ntasks=8
    gres=gpu:a100:2,nvme:1
    cpus-per-task=2
    mem-per-cpu=4G
    licenses=matlab:2
    time=01:00:00
    constraint=a100&nvlink
    nodelist=node[01-02]
    switches=1@00:30:00
    output=/state/main.out
    error=/state/main.err
    open-mode=append
    wait-all-nodes=1
    export=ALL
    signal=B:USR1@120
    comment="idle-gpu exempt"
    exclude=node03
    requeue
    contiguous
    hint=nomultithread
    "#);
}

#[test_case(GpuRequest::Gres, &["gres=gpu:a100:2,nvme:1"])]
#[test_case(GpuRequest::GpusPerNode, &["gpus-per-node=a100:2", "gres=nvme:1"])]
fn gpus_are_asked_for_as_the_cluster_wants(gpu_request: GpuRequest, expected: &[&str]) {
    let options = SubmitOptions {
        gpu_type: Some("a100".parse().unwrap()),
        gres: vec!["nvme:1".parse().unwrap()],
        ..SubmitOptions::default()
    };
    let directives = Directives { gpus_per_node: 2, gpu_request, options, ..base() };
    let found: Vec<String> = lines(&directives)
        .into_iter()
        .filter(|line| line.starts_with("gres") || line.starts_with("gpus-per-node"))
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn gpus_of_several_types_take_the_place_of_their_number() {
    let gres = vec!["gpu:1g.5gb:2".parse().unwrap(), "gpu:2g.10gb:1".parse().unwrap()];
    let options = SubmitOptions { gres, ..SubmitOptions::default() };
    let directives = Directives { gpus_per_node: 3, options, ..base() };
    assert!(has(&directives, "gres=gpu:1g.5gb:2,gpu:2g.10gb:1"), "{:?}", lines(&directives));
    let other = Directives { gpu_request: GpuRequest::GpusPerNode, ..directives };
    assert!(has(&other, "gpus-per-node=1g.5gb:2,2g.10gb:1"), "{:?}", lines(&other));
}

#[test]
fn the_jobs_own_memory_overrides_all_memory() {
    let options = SubmitOptions {
        memory: Some(MemoryRequest::PerNode(Memory::from_mib(65_536))),
        ..SubmitOptions::default()
    };
    let directives = Directives { all_memory: true, options, ..base() };
    assert!(has(&directives, "mem=64G") && !has(&directives, "mem=0"));
    assert!(has(&Directives { all_memory: true, ..base() }, "mem=0"));
}

#[test]
fn a_default_is_dropped_and_another_is_replaced() {
    let others = [
        ("mem", OptionValue::Drop),
        ("gres", OptionValue::Drop),
        ("wait-all-nodes", OptionValue::Text("0".parse().unwrap())),
    ];
    let others = others.map(|(name, value)| (name.parse().unwrap(), value)).into();
    let options = SubmitOptions { others, ..SubmitOptions::default() };
    let directives = Directives { gpus_per_node: 4, all_memory: true, options, ..base() };
    let lines = lines(&directives);
    assert!(!lines.iter().any(|line| line.starts_with("mem") || line.starts_with("gres")), "{lines:?}");
    let waits: Vec<&String> = lines.iter().filter(|line| line.starts_with("wait-all-nodes")).collect();
    assert_eq!(waits, ["wait-all-nodes=0"]);
}

#[test]
fn a_node_that_the_job_needs_is_not_excluded() {
    let options = SubmitOptions {
        nodelist: Some("node[01-02]".parse().unwrap()),
        exclude: Some("node[05-06]".parse().unwrap()),
        ..SubmitOptions::default()
    };
    let exclude = vec!["node02".parse().unwrap(), "node07".parse().unwrap()];
    assert!(has(&Directives { exclude, options, ..base() }, "exclude=node[05-06],node07"));
}

#[test_case("idle-gpu exempt", "comment=\"idle-gpu exempt traceparent=TRACE\"" ; "a text")]
#[test_case("{\"a\": 1}", "comment=\"{\\\"a\\\": 1,\\\"traceparent\\\":\\\"TRACE\\\"}\"" ; "an object")]
#[test_case("{}", "comment=\"{\\\"traceparent\\\":\\\"TRACE\\\"}\"" ; "an empty object")]
fn the_trace_goes_with_the_callers_comment(comment: &str, expected: &str) {
    let options = SubmitOptions { comment: Some(comment.parse().unwrap()), ..SubmitOptions::default() };
    let directives = Directives { trace: Some(TRACE.parse().unwrap()), options, ..base() };
    assert!(has(&directives, &expected.replace("TRACE", TRACE)), "{:?}", lines(&directives));
}

#[test_case("it's #1", "\"it's #1\"" ; "a quote and a hash")]
#[test_case("a\"b\\c", "\"a\\\"b\\\\c\"" ; "what sbatch escapes")]
#[test_case("plain", "plain" ; "a word")]
fn a_text_is_quoted_for_sbatch(text: &str, expected: &str) {
    let text: OptionText = text.parse().unwrap();
    assert_eq!(quoted_for_sbatch(text.as_str()), expected);
}

#[test]
fn a_path_with_a_space_a_hash_or_a_quote_is_quoted_for_sbatch() {
    let word = |dir: &str| path_word(&dir.parse().unwrap(), "main.out");
    assert_eq!(word("/a-b_c.d/1").unwrap(), "/a-b_c.d/1/main.out");
    assert_eq!(word("/a b").unwrap(), "\"/a b/main.out\"");
    assert_eq!(word("/#a").unwrap(), "\"/#a/main.out\"");
    assert_eq!(word("/a\"").unwrap(), "'/a\"/main.out'");
    assert!(word("/a\"'").is_err());
}
