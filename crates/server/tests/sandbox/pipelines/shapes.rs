//! Two pipelines that users have, each with a success, a failure, a cancellation and a node that fails.

use std::time::Duration;

use serde_json::{Value, json};
use test_case::test_case;

use super::{begun, ended, job, power_of, states, submit};
use crate::service::{Service, until};

const OWN: &str = "own=$TAO_API_RESULTS_DIR/$TAO_API_JOB_ID; mkdir -p \"$own\"";

/// A model and a judge serve an evaluation on a third node. The scores are exported afterwards.
fn evaluation(end: &str) -> Value {
    let ask =
        format!("{OWN}; echo \"$MODEL_HOST $JUDGE_HOST\" >\"$own/scores\"; touch \"$own/begun\"; {end}");
    let eval = json!({
        "services": [
            {"name": "model", "command": "exec sleep 3600", "nodes": 1},
            {"name": "judge", "command": "exec sleep 3600", "nodes": 1},
        ],
        "steps": [{"name": "gsm8k", "command": ask, "nodes": 1}],
        "resources": {"num_nodes": 3, "gpus_per_node": 0, "cpus_per_task": 1, "time_hours": 0.2},
    });
    let export =
        job("grep -E '^node0[1-4] node0[1-4]$' \"$NEEDS_EVAL_DIR/scores\"", &[("eval", "succeeded")]);
    json!({"jobs": {"eval": eval, "export": export}})
}

/// Preparation, a training with four processes of MPI on two nodes, and a clean-up whatever happened.
fn horovod(end: &str) -> Value {
    let mut train = job(
        &format!("{OWN}; cat \"$NEEDS_PREP_DIR/data\"; touch \"$own/begun\"; {end}"),
        &[("prep", "succeeded")],
    );
    train["launcher"] = json!({"kind": "mpi", "plugin": "none"});
    train["resources"]["num_nodes"] = 2.into();
    train["resources"]["tasks_per_node"] = 2.into();
    json!({"jobs": {
        "prep": job(&format!("{OWN}; echo 42 >\"$own/data\""), &[]),
        "train": train,
        "clean": job("rm \"$NEEDS_PREP_DIR/data\"", &[("prep", "finished"), ("train", "finished")]),
    }})
}

fn is(pipeline: &Value, expected: &[(&str, &str)]) {
    let mut expected: Vec<_> =
        expected.iter().map(|(name, state)| ((*name).to_owned(), (*state).to_owned())).collect();
    let mut found = states(pipeline);
    found.sort();
    expected.sort();
    assert_eq!(found, expected, "{pipeline:#}");
}

/// What becomes of the jobs beside the one that ends as the branch says.
struct Others {
    before: &'static [(&'static str, &'static str)],
    after_success: (&'static str, &'static str),
    after_failure: (&'static str, &'static str),
}

const EVALUATION: Others =
    Others { before: &[], after_success: ("export", "Done"), after_failure: ("export", "skipped") };
const HOROVOD: Others = Others {
    before: &[("prep", "Done")],
    after_success: ("clean", "Done"),
    after_failure: ("clean", "Done"),
};

#[test_case(evaluation, "eval", &EVALUATION ; "of an evaluation")]
#[test_case(horovod, "train", &HOROVOD ; "of a training with MPI")]
fn the_rest_follows_from_the_end(shape: fn(&str) -> Value, middle: &str, others: &Others) {
    let service = Service::start();
    let ends = ["true", "exit 7", "exec sleep 600"];
    let [works, fails, hangs] = ends.map(|end| submit(&service, &shape(end)));
    let all = |state, after| [others.before, &[(middle, state), after]].concat();
    let job = begun(&service, &hangs, middle, "begun");
    assert_eq!(service.post(&format!("/pipelines/{hangs}/cancel"), "").status, 202);
    is(&ended(&service, &works), &all("Done", others.after_success));
    is(&ended(&service, &fails), &all("Error", others.after_failure));
    is(&ended(&service, &hangs), &all("Canceled", (others.after_success.0, "Canceled")));
    assert_eq!(service.sandbox.login(&format!("squeue --me -h -n tao-job-{job} -o %A")), "");
}

#[test_case(evaluation, "eval", &EVALUATION ; "of an evaluation")]
#[test_case(horovod, "train", &HOROVOD ; "of a training with MPI")]
fn a_node_that_fails_costs_an_attempt(shape: fn(&str) -> Value, middle: &str, others: &Others) {
    let service = Service::start_with(&[("TAO_SLURM_RETRY_WAIT", "1s")]);
    // Of several processes, one waits for the failure.
    let mut pipeline = shape("if mkdir \"$own/first\"; then exec sleep 600; else true; fi");
    pipeline["jobs"][middle]["use_requeue"] = false.into();
    let id = submit(&service, &pipeline);
    let job = begun(&service, &id, middle, "begun");
    let dead = service.sandbox.fault(power_of(&service, &job));
    until("its second attempt", Duration::from_mins(3), || service.status(&job)["attempt"] == 2);
    drop(dead);
    is(&ended(&service, &id), &[others.before, &[(middle, "Done"), others.after_success]].concat());
    let attempts = service.get(&format!("/jobs/{job}/attempts")).json();
    assert_eq!(attempts["attempts"][0]["slurm_state"], "NODE_FAIL", "{attempts}");
}
