use proptest::prelude::*;
use remote::{GpuUse, NodeUse, UsageMarker};
use slurm::SlurmState;

use super::*;
use crate::{fixtures::submitted_job, job::stored::Job, progress::usage::Usage};

const MINUTES: u32 = 15;

fn job(action: IdleAction) -> Job {
    let mut job = submitted_job();
    job.phase = Phase::Running;
    job.run.state = Some(SlurmState::Running);
    job.spec.idle_policy = Some(IdlePolicy { below_percent: 5, minutes: MINUTES, action });
    job
}

/// What a run of two GPUs tells: a marker a minute, each of six samples. `trace`: the percent of both for each ten seconds.
fn markers(trace: &[[u8; 2]]) -> Vec<UsageMarker> {
    let mut sums = [(0, 0); 2];
    let mut markers = Vec::new();
    for (k, sample) in trace.iter().enumerate() {
        for (sum, percent) in sums.iter_mut().zip(sample) {
            *sum = (sum.0 + u64::from(*percent), sum.1.max(*percent));
        }
        if k % 6 == 5 {
            let samples = u32::try_from(k + 1).unwrap();
            let gpu = |(index, (sum, most)): (u32, (u64, u8))| GpuUse {
                index,
                samples,
                sum,
                most,
                most_memory: 1,
                memory: 2,
            };
            let gpus = (0..).zip(sums).map(gpu).collect();
            let node = NodeUse { name: "node01".to_owned(), cpu_seconds: 0, most_memory: 1, gpus };
            let slurm_id = slurm::SlurmJobId::new(7).unwrap();
            let at = 1000 + 10 * i64::from(samples);
            markers.push(UsageMarker { slurm_id, restart: 0, at, began: 1000, nodes: vec![node] });
        }
    }
    markers
}

/// After how many seconds the service acts; `None`: never.
fn acts_after(trace: &[[u8; 2]]) -> Option<i64> {
    let mut job = job(IdleAction::Cancel);
    for marker in markers(trace) {
        let mut run = job.run.clone();
        run.usage = Some(Usage::absorb(run.usage.as_ref(), &marker, job.spec.idle_policy.as_ref()));
        watch(&mut run, &Task::of(&job).unwrap());
        if run.kill_reason.is_some() {
            return Some(marker.at - 1000);
        }
        job.run = run;
    }
    None
}

/// A minute or more of work of one of the GPUs, then a time without any, such as that of a checkpoint or a validation.
fn cycle(longest_pause: usize) -> impl Strategy<Value = Vec<[u8; 2]>> {
    (prop::collection::vec(30_u8..=100, 6..60), 0..longest_pause, any::<bool>(), 0_u8..3).prop_map(
        |(work, pause, other, noise)| {
            let busy =
                work.into_iter().map(|percent| if other { [noise, percent] } else { [percent, noise] });
            busy.chain(std::iter::repeat_n([noise, noise], pause)).collect()
        },
    )
}

/// Two minutes less than the policy: what a minute's mean can hide on both sides.
const SHORTER: usize = (MINUTES as usize - 2) * 6;

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn it_never_acts_on_a_busy_run(cycles in prop::collection::vec(cycle(SHORTER), 1..40)) {
        prop_assert_eq!(acts_after(&cycles.concat()), None);
    }
}

proptest! {
    #[test]
    fn it_acts_on_a_run_that_stops_working(
        cycles in prop::collection::vec(cycle(SHORTER), 0..10),
        noise in 0_u8..5,
    ) {
        let mut trace = cycles.concat();
        let last = trace.iter().rposition(|sample| sample.iter().any(|percent| *percent >= 30)).map_or(0, |k| k + 1);
        trace.truncate(last);
        let stops = i64::try_from(last).unwrap() * 10;
        trace.extend(std::iter::repeat_n([noise, 0], 2000));
        let acts = acts_after(&trace).unwrap() - stops;
        let least = i64::from(MINUTES) * 60 - 60;
        prop_assert!((least..=least + 180).contains(&acts), "{}", acts);
    }
}

/// A run that has been idle for so many minutes.
fn idle_for(job: &mut Job, minutes: usize) {
    for marker in markers(&vec![[0, 0]; minutes * 6]) {
        job.run.usage = Some(Usage::absorb(job.run.usage.as_ref(), &marker, job.spec.idle_policy.as_ref()));
    }
}

#[test]
fn each_action_has_its_end_and_warns_before() {
    for (action, ends, warns) in [
        (IdleAction::Warn, None, "No GPU has reached 5 % since 1970-01-01 00:16:40 UTC."),
        (
            IdleAction::Pause,
            None,
            "No GPU has reached 5 % since 1970-01-01 00:16:40 UTC; after 15 min the job is paused.",
        ),
        (
            IdleAction::Cancel,
            Some("No GPU has reached 5 % for 15 min, since 1970-01-01 00:16:40 UTC."),
            "No GPU has reached 5 % since 1970-01-01 00:16:40 UTC; after 15 min the job is canceled.",
        ),
    ] {
        let mut job = job(action);
        let policy = job.spec.idle_policy.clone();
        idle_for(&mut job, 7);
        assert_eq!(warning(&job.run, policy.as_ref()), None);
        idle_for(&mut job, 8);
        assert_eq!(warning(&job.run, policy.as_ref()).as_deref(), Some(warns));
        idle_for(&mut job, 15);
        let mut run = job.run.clone();
        watch(&mut run, &Task::of(&job).unwrap());
        assert_eq!(run.kill_reason.as_deref(), ends);
        assert_eq!(pauses(&run, policy.as_ref()).is_some(), action == IdleAction::Pause);
    }
}

#[test]
fn a_task_that_cannot_be_paused_alone_is_canceled() {
    let mut job = job(IdleAction::Pause);
    idle_for(&mut job, 15);
    let mut run = job.run.clone();
    let task = Task { is_of_array: true, ..Task::of(&job).unwrap() };
    watch(&mut run, &task);
    assert!(run.kill_reason.is_some());
    let canceled = Task { desired: DesiredState::Cancel, ..task };
    let mut run = job.run.clone();
    watch(&mut run, &canceled);
    assert_eq!(run.kill_reason, None, "its owner has already decided");
}
