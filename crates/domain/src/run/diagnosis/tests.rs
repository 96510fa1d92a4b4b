use std::collections::HashSet;

use test_case::test_case;

use super::{
    matching::{LINES, compiles},
    *,
};

mod recorded;

fn of_log(log: &str) -> Option<Diagnosis> {
    with_image(log, ImageSource::Elsewhere)
}

fn with_image(log: &str, image: ImageSource) -> Option<Diagnosis> {
    diagnose(&Evidence {
        state: Some(&SlurmState::Failed),
        nodes: "node01",
        logs: &[log.as_bytes()],
        image,
        ..Evidence::default()
    })
}

#[test]
fn every_example_is_judged_by_its_own_rule() {
    for rule in RULES.iter() {
        assert!(compiles(rule), "{}", rule.id);
        let Some(fault) = rule.fault else { continue };
        for line in rule.matching {
            let found = matches(&[line.as_bytes()]);
            assert!(found.iter().any(|other| other.rule.id == rule.id), "{} misses {line}", rule.id);
            let cause = fault.cause(ImageSource::Elsewhere);
            assert_eq!(of_log(line).map(|found| found.cause), Some(cause), "{line}");
        }
        for line in rule.others {
            let found = matches(&[line.as_bytes()]);
            assert!(found.is_empty(), "{} hits {line} by {:?}", rule.id, found[0].rule.id);
        }
    }
}

/// One task could not pull its image; srun ended the other one, and returned the code of that.
#[test]
fn the_log_of_a_container_that_failed_says_more_than_the_signal_that_ended_the_others() {
    let refused = "FATAL:   Unable to handle docker://r.io/a:1 uri: failed to get checksum for docker://r.io/a:1: unauthorized: \
                   authentication required\nsrun: error: node02: task 1: Exited with exit code 255\nsrun: error: node01: task 0: Terminated";
    for (log, rule) in
        [(refused, "registry-credentials"), ("srun: error: node01: task 0: Terminated", "ended-by-slurm")]
    {
        let found = diagnose(&Evidence {
            state: Some(&SlurmState::Failed),
            exit: Some(ExitCode { code: SIGTERM, signal: 0 }),
            terminated: true,
            has_exit_record: true,
            logs: &[log.as_bytes()],
            ..Evidence::default()
        });
        assert_eq!(found.unwrap().signature, rule);
    }
}

#[test]
fn no_two_rules_share_an_id() {
    let ids: HashSet<_> = RULES.iter().map(|rule| rule.id).collect();
    assert_eq!(ids.len(), RULES.len());
}

/// TAO's sixteen patterns, each by a line that they were made for.
#[test_case("The NVIDIA driver on your system is too old")]
#[test_case("CUDA driver version is insufficient for CUDA runtime version")]
#[test_case("no CUDA-capable device is detected")]
#[test_case("CUDA initialization error")]
#[test_case("NCCL error: unhandled system error")]
#[test_case("GPU 3 is lost; not found any more")]
#[test_case("RuntimeError: CUDA error: uncorrectable ECC error encountered")]
#[test_case("cuInit failed")]
#[test_case("torch.cuda.is_available() is False")]
#[test_case("Unable to determine the device handle for GPU 0000:01:00.0")]
#[test_case("GPU has fallen off the bus")]
#[test_case("NVRM: Xid (PCI:0000:3b:00): 79, error")]
#[test_case("double bit ECC error")]
#[test_case("GPU temperature exceeded the limit")]
#[test_case("InfiniBand device error")]
#[test_case("RDMA device error")]
fn what_tao_calls_retriable_is(line: &str) {
    assert_eq!(of_log(line).map(|found| found.cause), Some(Cause::Infrastructure), "{line}");
}

#[test]
fn a_fault_of_the_job_beats_one_of_the_infrastructure() {
    let log = "ncclSystemError: System call failed\n[rank0]: ValueError: num_classes must be 20\n";
    let found = of_log(log).unwrap();
    assert_eq!((found.cause, found.signature.as_str()), (Cause::User, "python-error"));
    assert_eq!(found.line.as_deref(), Some("[rank0]: ValueError: num_classes must be 20"));
}

#[test]
fn slurms_state_comes_before_the_log() {
    let log: &[u8] = b"ValueError: x\n";
    let evidence =
        Evidence { state: Some(&SlurmState::NodeFail), nodes: "node01", logs: &[log], ..Evidence::default() };
    let found = diagnose(&evidence).unwrap();
    assert_eq!((found.cause, found.signature.as_str()), (Cause::Infrastructure, "node_fail"));
    assert_eq!(found.nodes, ["node01".parse().unwrap()]);
}

#[test]
fn an_empty_log_says_nothing() {
    assert_eq!(of_log(""), None);
    assert_eq!(of_log("Epoch 3 of 10\n"), None);
}

#[test]
fn only_the_last_lines_are_searched() {
    let log = format!("ValueError: long ago\n{}", "fine\n".repeat(LINES));
    assert_eq!(of_log(&log), None);
}

#[test]
fn of_several_nodes_the_one_that_the_line_names_is_blamed() {
    let log: &[u8] = b"srun: error: Node failure on node2\n";
    let sick = [];
    let evidence = Evidence { nodes: "node[1-3,20]", logs: &[log], unhealthy: &sick, ..Evidence::default() };
    assert_eq!(diagnose(&evidence).unwrap().nodes, ["node2".parse().unwrap()]);
}

#[test]
fn a_node_that_slurm_does_not_trust_is_to_blame() {
    let sick = [UnhealthyNode { name: "node02".parse().unwrap(), state: "down".to_owned() }];
    let evidence = Evidence { nodes: "node[01-02]", unhealthy: &sick, ..Evidence::default() };
    let found = diagnose(&evidence).unwrap();
    assert_eq!(found.nodes, ["node02".parse().unwrap()]);
    assert_eq!(found.why, "Slurm reports node node02 as down");
}

#[test]
fn a_node_that_srun_has_seen_fail_is_to_blame_whatever_else_the_log_says() {
    let log: &[u8] = b"ValueError: lost my peer\nsrun: error: Node failure on node2\n";
    let exit = Some(ExitCode { code: remote::script::EXIT_NODE_FAILED, signal: 0 });
    let state = Some(&SlurmState::Failed);
    let found =
        diagnose(&Evidence { state, exit, nodes: "node[1-3]", logs: &[log], ..Evidence::default() }).unwrap();
    assert_eq!((found.cause, found.signature.as_str()), (Cause::Infrastructure, "node-failed"));
    assert_eq!(found.nodes, ["node2".parse().unwrap()]);
}

#[test_case(remote::script::EXIT_NODE_FAILED, "node-failed")]
#[test_case(remote::script::EXIT_NO_MARKS, "no-marks")]
#[test_case(remote::script::EXIT_NO_ENV_FILE, "env-file-missing")]
#[test_case(remote::script::EXIT_NO_RENDEZVOUS, "no-rendezvous")]
#[test_case(remote::script::EXIT_BEGUN, "begun-before")]
fn a_script_that_could_not_begin_is_the_infrastructures(code: u8, rule: &str) {
    let exit = Some(ExitCode { code, signal: 0 });
    let found =
        diagnose(&Evidence { state: Some(&SlurmState::Failed), exit, ..Evidence::default() }).unwrap();
    assert_eq!((found.cause, found.signature.as_str()), (Cause::Infrastructure, rule));
}

#[test_case(remote::script::EXIT_NODE_FAILED)]
#[test_case(remote::script::EXIT_NO_MARKS)]
fn a_program_that_returns_what_its_script_would_is_not_taken_for_it(code: u8) {
    let exit = Some(ExitCode { code, signal: 0 });
    let failed =
        Evidence { state: Some(&SlurmState::Failed), exit, has_exit_record: true, ..Evidence::default() };
    assert_eq!(diagnose(&failed), None);
}
