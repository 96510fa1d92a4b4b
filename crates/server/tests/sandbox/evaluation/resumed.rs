//! An evaluation that its time limit or a preemption interrupts goes on from its cache, in attempts that are queued ahead: the service is away.

use std::time::Duration;

use serde_json::{Value, json};

use super::{evaluation, log};
use crate::{
    launchers::{are_installed, is_gone},
    restarts::{attempts, hours},
    service::{Service, comes_true},
};

/// An evaluation whose attempts have this time limit in seconds, and all together `most`. Each answer takes half a second.
fn interrupted(count: u32, link: u64, most: u64) -> Value {
    let mut job = evaluation(count);
    job["steps"][0]["env"]["SLOW"] = "0.5".into();
    job["restart"] =
        json!({"on": ["timeout", "preempted"], "prequeue": true, "max_total_hours": hours(most)});
    job["resources"]["time_hours"] = hours(60).into();
    job["resources"]["timeout_hours"] = hours(link).into();
    job["backend_details"] = json!({"partition": "scavenge"});
    job
}

/// Runs while the service is away.
struct Away<'a> {
    service: &'a Service,
    id: &'a str,
}

impl Away<'_> {
    /// The Slurm jobs of the job in the queue: "name state".
    fn queued(&self) -> Vec<String> {
        let rows = self.service.sandbox.login("squeue --me -h -o '%j %T'");
        rows.lines().filter(|row| row.contains(self.id)).map(str::to_owned).collect()
    }

    /// The answers in the cache.
    fn answers(&self) -> u64 {
        let base = self.service.sandbox.var("SLURM_BASE_RESULTS_DIR");
        let file = format!("{base}/results/{}/cache.jsonl", self.id);
        self.service.sandbox.login(&format!("cat {file} 2>/dev/null | wc -l")).trim().parse().unwrap()
    }

    /// How many seconds the attempt that runs has run.
    fn runs(&self) -> u64 {
        let rows = self.service.sandbox.login("squeue --me -h -t R -o '%j %M'");
        let time = rows.lines().find(|row| row.contains(self.id)).and_then(|row| row.rsplit_once(' '));
        time.map_or(0, |(_, time)| {
            time.split([':', '-']).fold(0, |sum, part| 60 * sum + part.parse::<u64>().unwrap_or(0))
        })
    }

    fn awaits(&self, what: &str, minutes: u64, done: impl FnMut() -> bool) {
        assert!(comes_true(Duration::from_mins(minutes), done), "no {what}: {}", self.story());
    }

    fn awaits_attempt(&self, number: u32, state: &str) {
        let row = format!("tao-job-{}-r{number} {state}", self.id);
        self.awaits(&row, 1, || self.queued().contains(&row));
    }

    fn awaits_end(&self) {
        self.awaits("end of the last attempt", 5, || self.queued().is_empty());
    }

    /// What Slurm and the scripts say of the attempts, for a test that fails.
    fn story(&self) -> String {
        let base = self.service.sandbox.var("SLURM_BASE_RESULTS_DIR");
        self.service.sandbox.login(&format!(
            "sacct -X -n -P -o JobID,JobName,State,ExitCode,Start,End | grep {0}; wc -l {base}/results/{0}/cache.jsonl; \
             find {base} -path '*/state/{0}/*' -name main.err -exec tail -n 4 {{}} + | cut -c 1-200",
            self.id
        ))
    }
}

#[test]
fn an_interrupted_evaluation_goes_on_from_its_cache_while_the_service_is_away() {
    let mut service = Service::start();
    if !are_installed(&service) {
        return;
    }
    let mut job = interrupted(400, 18, 3600);
    // So the first two attempts leave questions, however long they last.
    job["steps"][0]["env"]["MOST"] = "160".into();
    let id = service.submit(&job);
    let away = Away { service: &service, id: &id };
    away.awaits_attempt(2, "PENDING");
    service.stop();
    let away = Away { service: &service, id: &id };
    away.awaits_attempt(2, "RUNNING");
    let before = away.answers();
    assert!(before > 0, "the first attempt has answered nothing: {}", away.story());
    // An attempt of less than ten seconds does not go on.
    away.awaits("answers of the second attempt", 1, || away.answers() > before && away.runs() >= 12);
    service.sandbox.login("srun -p polar -N4 --exclusive -t 1 true");
    away.awaits_end();
    service.spawn();
    let ended = service.wait_ended(&id);
    let attempts = attempts(&service, &id);
    assert_eq!(ended["status"], "Done", "{ended}\n{attempts:?}");
    let states: Vec<_> = attempts.iter().map(|one| one["slurm_state"].as_str().unwrap_or_default()).collect();
    assert!(
        states.len() >= 3 && states.contains(&"PREEMPTED") && states.last() == Some(&"COMPLETED"),
        "{states:?}"
    );
    let scores = &service.get(&format!("/jobs/{id}/results")).json()[0]["value"];
    assert_eq!(scores["score"], 1.0, "{scores}");
    // What was answered before is not asked again: only those that an interruption has cut off, at most eight each time.
    let asked: usize = (1..=attempts.len())
        .map(|number| {
            let path = format!("/jobs/{id}/logs?attempt={number}&tail=1000&stream=out&role=judge");
            service.get(&path).text.matches("answers ").count()
        })
        .sum();
    assert!((400..=400 + 8 * (states.len() - 1)).contains(&asked), "{asked} of 400 in {states:?}");
    assert!(log(&service, &id, "evaluate").contains(" answers are in the cache"));
    assert_eq!(service.get("/clusters/sandbox").json()["orphans"]["count"], 0);
    is_gone(&id);
}

#[test]
fn an_evaluation_does_not_go_on_longer_than_it_may_while_the_service_is_away() {
    let mut service = Service::start();
    if !are_installed(&service) {
        return;
    }
    // Another attempt is queued if ten seconds are left even if this one uses all the time that Slurm allows it, a minute. After the second
    // one less than ten are left.
    let most = 72;
    let id = service.submit(&interrupted(20_000, 32, most));
    Away { service: &service, id: &id }.awaits_attempt(2, "PENDING");
    service.stop();
    Away { service: &service, id: &id }.awaits_end();
    service.spawn();
    let ended = service.wait_ended(&id);
    let attempts = attempts(&service, &id);
    assert_eq!((&ended["status"], attempts.len()), (&json!("Error"), 2), "{ended}\n{attempts:?}");
    let message = ended["message"].as_str().unwrap();
    assert!(message.contains(&format!("all {most} s of `restart.max_total_hours`")), "{message}");
    assert!(ended["progress"]["done"].as_f64().unwrap() > 0.0, "{ended}");
    is_gone(&id);
}
