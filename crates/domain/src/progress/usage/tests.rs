use super::*;
use crate::cluster::idle::IdleAction;

const POLICY: IdlePolicy = IdlePolicy { below_percent: 5, minutes: 10, action: IdleAction::Pause };

fn gpu(index: u32, samples: u32, sum: u64, most: u8) -> GpuUse {
    GpuUse { index, samples, sum, most, most_memory: 2048, memory: 81_920 }
}

fn marker(at: i64, gpus: Vec<GpuUse>) -> UsageMarker {
    let node = NodeUse { name: "node01".to_owned(), cpu_seconds: 90, most_memory: 3072, gpus };
    UsageMarker {
        slurm_id: slurm::SlurmJobId::new(7).unwrap(),
        restart: 0,
        at,
        began: 1000,
        nodes: vec![node],
    }
}

fn after(markers: &[UsageMarker]) -> Usage {
    let mut usage = None;
    for marker in markers {
        usage = Some(Usage::absorb(usage.as_ref(), marker, Some(&POLICY)));
    }
    usage.unwrap()
}

#[test]
fn sums_become_means_of_a_run_and_of_each_bucket() {
    let first = marker(1060, vec![gpu(1, 6, 60, 20), gpu(0, 6, 540, 99)]);
    let second = marker(1120, vec![gpu(0, 12, 540, 99), gpu(1, 12, 60, 20)]);
    let usage = after(&[first.clone(), first.clone(), second.clone(), first]);
    assert_eq!(usage.mean_percent(), Some(25.0), "a marker that is known counts once");
    assert_eq!(
        usage.gpus().map(|(_, gpu)| (gpu.index, mean_of(gpu))).collect::<Vec<_>>(),
        [(0, 45.0), (1, 5.0)]
    );
    let means: Vec<_> = usage.series.buckets.iter().filter_map(Bucket::mean).collect();
    assert_eq!(means, [50.0, 0.0]);
    let anew = UsageMarker { began: 1200, ..marker(1260, vec![gpu(0, 6, 6, 1)]) };
    assert_eq!(
        Usage::absorb(Some(&usage), &anew, None).mean_percent(),
        Some(1.0),
        "Slurm started the run again"
    );
}

#[test]
fn gpus_are_idle_while_the_busiest_of_them_is() {
    let at = |k: i64, sums: [u64; 2]| {
        let samples = u32::try_from(6 * k).unwrap();
        marker(1000 + 60 * k, vec![gpu(0, samples, sums[0], 99), gpu(1, samples, sums[1], 99)])
    };
    let idle = [at(1, [0, 600]), at(2, [0, 624]), at(3, [24, 648])];
    assert_eq!((after(&idle).idle_since, after(&idle).idle_seconds()), (Some(1060), 120));
    let busy = [&idle[..], &[at(4, [24, 678])]].concat();
    assert_eq!(after(&busy).idle_since, None, "5 percent is not below 5");
}

#[test]
fn what_was_not_seen_is_not_idle() {
    let idle = marker(1060, vec![gpu(0, 6, 0, 0), gpu(1, 6, 0, 0)]);
    assert_eq!(after(std::slice::from_ref(&idle)).idle_since, Some(1000));
    let silent = marker(1120, vec![gpu(0, 12, 0, 0), gpu(1, 6, 0, 0)]);
    assert_eq!(after(&[idle.clone(), silent]).idle_since, None, "a GPU gave no answer");
    let late = marker(1361, vec![gpu(0, 36, 0, 0), gpu(1, 36, 0, 0)]);
    assert_eq!(
        after(&[idle.clone(), late]).idle_since,
        None,
        "it may have been busy within these five minutes"
    );
    let none = marker(1120, vec![]);
    assert_eq!(after(&[idle, none]).idle_since, None, "no GPU was seen");
}

#[test]
fn notes_say_what_to_ask_for() {
    let of = |gpus: Vec<GpuUse>| notes(&after(&[marker(1900, gpus)]), Some(Held { cpus: 4 }));
    let mostly =
        of((0..8).map(|k| gpu(k, 90, if k < 5 { 1584 } else { 0 }, if k < 5 { 60 } else { 0 })).collect());
    assert_eq!(
        mostly,
        [
            "8 GPUs, 11 % used on average, 3 of them never: ask for 5.",
            "At most 2.0 of the 80.0 GiB of a GPU were in use: a larger batch, or a smaller type of GPU, would do.",
            "4 CPUs, 2 % used on average.",
            "At most 3.0 GiB of the memory of the node were in use.",
        ]
    );
    assert_eq!(
        of(vec![gpu(0, 90, 0, 0)])[0],
        "1 GPU, 0 % used on average, never used: does the program see it?"
    );
    let slow = of(vec![gpu(0, 90, 900, 30), gpu(1, 90, 900, 30)]);
    assert!(slow[1].starts_with("The GPUs wait for most of the time."), "{slow:?}");
    assert_eq!(of(vec![])[0], "4 CPUs, 2 % used on average.", "a job without GPUs");
}
