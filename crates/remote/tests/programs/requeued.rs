use remote::{EarlierRun, Exclude, NodeHealth, RemoteCommand, Requeued};
use slurm::{FailureClass, SlurmState};

use crate::site::{Site, id, key};

#[test]
fn the_last_run_that_ended_counts_and_the_one_that_waits_does_not() {
    let site = Site::new();
    // As 24.11 prints them; 22.05 lacks the last row.
    site.program(
        "sacct",
        r"printf '7\x1fPREEMPTED\x1fnode02\x1ftao-job-a\n7\x1fNODE_FAIL\x1fnode01\x1ftao-job-a\n7\x1fPENDING\x1fNone assigned\x1ftao-job-a\n8\x1fFAILED\x1fnode03\x1fsomebody-elses\n'",
    );
    let asked = Requeued { jobs: vec![(id(7), key("tao-job-a")), (id(8), key("tao-job-b"))] };
    let runs = site.run(&asked);
    assert_eq!(runs.len(), 1);
    assert_eq!(runs[&id(7)], EarlierRun { state: SlurmState::NodeFail, nodes: "node01".to_owned() });
}

#[test]
fn accounting_that_does_not_answer_is_no_answer() {
    let site = Site::new();
    site.program(
        "sacct",
        "echo 'sacct: error: Problem talking to the database: Connection refused' >&2; exit 1",
    );
    let asked = Requeued { jobs: vec![(id(7), key("tao-job-a"))] };
    assert_eq!(site.try_run(&asked).unwrap_err().class(), FailureClass::Infra);
}

#[test]
fn a_job_is_kept_away_from_nodes_only_under_its_own_name() {
    let site = Site::new();
    site.program("squeue", "echo tao-job-a");
    site.program("scontrol", r#"echo "$*" >>"$SITE/scontrol.calls""#);
    let nodes = vec!["node01".parse().unwrap(), "node02".parse().unwrap()];
    let command =
        Exclude { jobs: vec![(id(7), key("tao-job-a"), nodes.clone()), (id(8), key("tao-job-b"), nodes)] };
    let failed = site.run(&command).failed;
    assert!(failed[0].is_none() && failed[1].is_some());
    assert_eq!(site.read("scontrol.calls"), "update JobId=7 ExcNodeList=node01,node02\n");
}

#[test]
fn sick_nodes_are_told_with_slurms_words() {
    let site = Site::new();
    site.program(
        "sinfo",
        r#"[ "$*" = "-a -h -N -n node01,node02,node03 -o %N|%T|%E" ] || exit 9
printf 'node01|down*|Not responding\nnode01|down*|Not responding\nnode02|idle|none\nnode03|drained|NHC: GPU 3\n'"#,
    );
    let nodes = ["node01", "node02", "node03"].map(|node| node.parse().unwrap()).to_vec();
    let sick = site.run(&NodeHealth { nodes }).sick.unwrap();
    let told: Vec<String> = sick.iter().map(|(node, why)| format!("{node} {why}")).collect();
    assert_eq!(told, ["node01 down (Not responding)", "node03 drained (NHC: GPU 3)"]);
}

#[test]
fn a_sinfo_that_fails_says_nothing_about_nodes() {
    let site = Site::new();
    site.program("sinfo", "echo 'slurm_load_node: Unable to contact slurm controller (connect failure)' >&2");
    let answer = site.run(&NodeHealth { nodes: vec!["node01".parse().unwrap()] });
    assert_eq!(answer.sick, None);
}

#[test]
fn questions_that_were_cut_change_nothing() {
    let site = Site::new();
    site.program("scontrol", r#"echo "$*" >>"$SITE/scontrol.calls""#);
    let command = Exclude { jobs: vec![(id(7), key("tao-job-a"), vec!["node01".parse().unwrap()])] };
    for length in 0..command.render().stdin.len() {
        let error = command.parse(&site.raw_cut(&command, length)).unwrap_err();
        assert_eq!(error.class(), FailureClass::NotDone, "{length}");
    }
    assert!(!site.exists("scontrol.calls"));
}
