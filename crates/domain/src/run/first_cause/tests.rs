//! The choice of the first cause, on texts of our own and on the corpus.

use remote::{LogErrors, LogLine};
use test_case::test_case;

use super::*;
use crate::run::diagnosis::{RULES, Standing};

mod corpus;

/// The lines of logs, each a match.
fn found(logs: &[(&str, &str)]) -> Vec<LogErrors> {
    let log = |(name, text): &(&str, &str)| {
        let mut offset = 0;
        let lines = text.split_inclusive('\n').map(|line| {
            let at = offset;
            offset += line.len() as u64;
            LogLine { offset: at, text: line.trim_end_matches('\n').to_owned(), is_match: true }
        });
        LogErrors { log: (*name).to_owned(), lines: lines.collect(), has_gaps: false }
    };
    logs.iter().map(log).collect()
}

fn cause(logs: &[(&str, &str)]) -> Option<(String, String)> {
    first_cause(&found(logs), &[]).and_then(|first| Some((first.rule, first.line?.text)))
}

fn line_of(log: &str) -> String {
    cause(&[("main.err", log)]).map(|(_, line)| line).unwrap_or_default()
}

#[test]
fn every_example_of_a_rule_is_its_own() {
    let specific = RULES.iter().filter(|rule| rule.fault.is_none());
    let mut wrong = Vec::new();
    for rule in specific {
        for line in rule.matching {
            let found = judge::rule_of(&line::Line::of(line).body, false);
            let is_mild =
                line::Line::of(line).level == Some(line::Level::Mild) && rule.standing == Standing::Noise;
            if !is_mild && found.map(|found| found.id) != Some(rule.id) {
                wrong.push(format!("{} misses {line}: {:?}", rule.id, found.map(|found| found.id)));
            }
        }
        for line in rule.others {
            let found = judge::rule_of(&line::Line::of(line).body, false);
            if found.is_some_and(|found| found.id == rule.id) {
                wrong.push(format!("{} hits {line}", rule.id));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_rule_that_can_be_blamed_has_advice() {
    for rule in RULES.iter() {
        assert_eq!(
            rule.advice.is_empty(),
            rule.standing >= Standing::Consequence || rule.advice.is_empty(),
            "{}",
            rule.id
        );
    }
}

#[test]
fn the_exception_of_one_rank_comes_before_what_the_others_say_of_it() {
    let log = "\
[rank1]: Traceback (most recent call last):
[rank1]: ValueError: num_classes must be 20
[rank0]: torch.distributed.DistBackendError: NCCL error in: x, remote process exited or there was a network error
torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n";
    let first = first_cause(&found(&[("main.err", log)]), &[]).unwrap();
    let line = first.line.clone().unwrap();
    assert_eq!((first.rule.as_str(), first.rank), ("python-error", Some(1)));
    assert_eq!(line.text, "[rank1]: ValueError: num_classes must be 20");
    let offset = usize::try_from(line.offset).unwrap();
    assert!(log[offset..].starts_with(&line.text));
    let rules: Vec<_> = first.followed.iter().map(|line| line.rule.as_str()).collect();
    assert_eq!(rules, ["peer-closed", "launcher-summary"]);
}

#[test]
fn a_rank_that_waited_wrote_its_line_earlier_in_the_file_of_another_node() {
    let logs = [
        (
            "train/0.err",
            "[E501 12:10:00.1 P.cpp:1] x\n[rank0]: RuntimeError: a shape is wrong on this rank\n",
        ),
        ("train/1.err", "[E501 12:00:00.1 P.cpp:1] x\n[rank4]: RuntimeError: a file is missing\n"),
    ];
    assert_eq!(cause(&logs).unwrap().1, "[rank4]: RuntimeError: a file is missing");
}

#[test]
fn of_a_chain_of_exceptions_the_first_is_blamed_and_an_ignored_one_is_not() {
    let log = "\
Exception ignored in: <function X.__del__ at 0x7f>
Traceback (most recent call last):
OSError: [Errno 9] Bad file descriptor
Traceback (most recent call last):
RuntimeError: the first
During handling of the above exception, another exception occurred:
ValueError: the second
";
    assert_eq!(line_of(log), "RuntimeError: the first");
}

#[test]
fn the_end_of_a_traceback_is_an_exception_of_any_name() {
    let frame = "  File \"/a.py\", line 3, in step\n    raise LimitHit(\n";
    let line = "titan.cache.LimitHit: 9 shapes\n";
    assert_eq!(line_of(&format!("{frame}{line}")), line.trim());
    assert_eq!(line_of(&format!("{frame}    ^^^^^^^\n{line}RuntimeError: x\n")), line.trim());
    let chain = "\nThe above exception was the direct cause of the following exception:\n\nRuntimeError: x\n";
    assert_eq!(line_of(&format!("{line}{chain}")), line.trim());
    assert_eq!(line_of(&format!("{frame}Training: 3 of 9 steps\nRuntimeError: x\n")), "RuntimeError: x");
    assert_eq!(line_of(&format!("{line}RuntimeError: x\n")), "RuntimeError: x");
}

#[test]
fn a_task_that_slurm_killed_when_it_ended_the_step_is_not_blamed() {
    let killed = "srun: error: node02: tasks 0-3: Killed\n";
    let ended = "slurmstepd: error: *** STEP 7.0 ON node01 CANCELLED AT 2024-05-01T12:00:00 ***\n";
    assert_eq!(line_of(&format!("{killed}{ended}")), killed.trim());
    assert_eq!(line_of(&format!("{ended}{killed}")), "");
    let waiting = "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.\n";
    assert_eq!(
        line_of(&format!("my-program: error: no mesh\n{waiting}{killed}")),
        "my-program: error: no mesh"
    );
}

#[test]
fn a_process_that_was_killed_is_blamed_only_if_no_error_is_there() {
    let killed = "E0501 12:00:00.1 7 torch/api.py:869] failed (exitcode: -9) local_rank: 0 (pid: 12) of binary: python\n";
    assert!(line_of(killed).contains("exitcode: -9"));
    assert_eq!(line_of(&format!("{killed}ValueError: x\n")), "ValueError: x");
}

#[test]
fn consequences_alone_are_not_blamed() {
    let log = "\
srun: error: node01: task 0: Exited with exit code 1
RuntimeError: [../third_party/gloo/pair.cc:534] Connection closed by peer [10.0.0.2]:31221
torch.distributed.elastic.multiprocessing.errors.ChildFailedError: 
slurmstepd: error: *** STEP 123.0 ON node01 CANCELLED AT 2024-05-01T12:00:00 ***
epoch 3 error: 0.01
done: errors=0
";
    assert_eq!(cause(&[("main.err", log)]), None);
    assert_eq!(cause(&[]), None);
}

#[test]
fn a_time_out_of_nccl_is_blamed_if_nothing_else_is_there() {
    let timeout =
        "[rank1]:[E P.cpp:1] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4)\n";
    assert!(line_of(timeout).contains("Watchdog"));
    assert_eq!(line_of(&format!("{timeout}my-program: error: no mesh\n")), "my-program: error: no mesh");
}

#[test_case("train.sh: line 3: prepare: command not found" => true; "a command that is missing")]
#[test_case("unzip: cannot find or open sets/a.zip: No such file or directory" => true; "a tool without its input")]
#[test_case("ERROR: Could not find a version that satisfies the requirement mesh==7" => true; "a package")]
#[test_case("mesh/adapt.c:9:14: error: expected ';' before 'for'" => true; "a compiler")]
#[test_case("train.sh: line 3: nvidia-smi: command not found" => false; "a command that shows the node")]
#[test_case("[rank1]: ./prepare: No such file or directory" => false; "a process of a launcher")]
#[test_case("epoch 3 took 12 s" => false; "no failure")]
fn a_step_that_failed_explains_what_is_missing_after_it(step: &str) -> bool {
    let missing = "FileNotFoundError: [Errno 2] No such file or directory: 'mesh.bin'";
    let found = line_of(&format!("{step}\nTraceback (most recent call last):\n{missing}\n"));
    assert!(found == step || found == missing, "{found}");
    assert_eq!(line_of(&format!("{step}\nValueError: lr is 0\n")), "ValueError: lr is 0");
    found == step
}

#[test]
fn a_step_far_before_the_line_does_not_explain_it() {
    let step = "train.sh: line 3: prepare: command not found\n";
    let missing = "FileNotFoundError: [Errno 2] No such file or directory: 'mesh.bin'";
    let between = "step 1: loss 3.1\n".repeat(400);
    assert_eq!(line_of(&format!("{step}{between}{missing}\n")), missing);
}

#[test]
fn an_error_of_cuda_follows_from_a_fault_that_the_driver_reports() {
    let cuda = "[rank6]: RuntimeError: CUDA error: unspecified launch failure\n";
    let report = |xid: u32| format!("[12.3] NVRM: Xid (PCI:0000:3b:00): {xid}, pid=4211, a message\n");
    let first = |xid: u32| {
        let logs = [("train/0.err", cuda), ("train/1.err", report(xid).as_str())]
            .map(|(log, text)| (log, text.to_owned()));
        cause(&logs.each_ref().map(|(log, text)| (*log, text.as_str()))).unwrap().0
    };
    // 31 is an access of the program's own to memory that it does not have.
    assert_eq!((first(79).as_str(), first(31).as_str()), ("xid", "gpu-code"));
}

#[test]
fn an_exception_that_ends_with_a_colon_is_explained_by_its_next_line() {
    let head = "[rank1]: RuntimeError: Error(s) in loading state_dict for Encoder:";
    let detail = "[rank1]: \tMissing key(s) in state_dict: \"head.weight\". ";
    assert_eq!(line_of(&format!("{head}\n{detail}\n")), detail.trim());
    assert_eq!(line_of(&format!("{head}\n[rank0]: \tValueError: x\n")), head);
}

#[test_case("mpi4py.MPI.Exception: MPI_ERR_RANK: invalid rank"; "a name with dots")]
#[test_case("Exception: no token"; "a name alone")]
#[test_case("zlib.error: Error -3 while decompressing data"; "a small letter")]
fn an_exception_that_is_ignored_is_not_blamed(exception: &str) {
    let log = format!(
        "Exception ignored in: <function X.__del__ at 0x7f>\nTraceback (most recent call last):\n{exception}\n"
    );
    assert_eq!(line_of(&log), "");
    assert_eq!(line_of(&format!("{log}{exception}\n")), exception);
}

#[test]
fn the_rank_that_aborted_by_mpi_is_named() {
    let log = "MPI_ABORT was invoked on rank 5 in communicator MPI_COMM_WORLD\nsolver: error: the mesh has no cells\n";
    let rank = |log: &str| first_cause(&found(&[("main.err", log)]), &[]).unwrap().rank;
    assert_eq!(rank(log), Some(5));
    assert_eq!(rank(&format!("{log}MPI_ABORT was invoked on rank 2 in communicator MPI_COMM_WORLD\n")), None);
}

#[test]
fn a_name_that_is_no_log_of_a_job_is_left_out() {
    assert_eq!(cause(&[("../secret", "ValueError: x\n")]), None);
}

proptest::proptest! {
    #[test]
    fn no_text_makes_the_choice_panic(text in "\\PC{0,200}") {
        let _ = first_cause(&found(&[("main.err", &text)]), &[]);
    }
}
