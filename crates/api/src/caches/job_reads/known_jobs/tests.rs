use super::*;

fn job(number: u128) -> Arc<Job> {
    Arc::new(testkit::command_job(number))
}

fn knows(kept: &Kept, job: &Job) -> bool {
    kept.take_part(vec![job.id]).1.is_empty()
}

#[test]
fn the_oldest_job_makes_room() {
    let mut kept = Kept::default();
    let jobs: Vec<_> = (0..=ROOM as u128).map(job).collect();
    for job in &jobs[..ROOM] {
        kept.keep(job);
    }
    kept.keep(&jobs[1]);
    assert!(knows(&kept, &jobs[0]), "another version of one that is kept takes no more room");
    kept.keep(&jobs[ROOM]);
    assert_eq!((kept.jobs.len(), kept.order.len()), (ROOM, ROOM));
    assert!(!knows(&kept, &jobs[0]) && knows(&kept, &jobs[1]) && knows(&kept, &jobs[ROOM]));
}

#[test]
fn a_deleted_job_leaves_the_cache() {
    let mut kept = Kept::default();
    kept.keep(&job(1));
    kept.keep(&job(2));
    kept.remove(job(1).id);
    kept.remove(job(1).id);
    assert!(!knows(&kept, &job(1)) && knows(&kept, &job(2)));
    assert_eq!(kept.order, [job(2).id]);
}

#[test]
fn a_job_with_a_large_specification_is_not_cached() {
    let mut large = testkit::command_job(1);
    assert!(is_small(&large));
    large.spec.work = domain::Work::Command { text: "x".repeat(LARGEST) };
    assert!(!is_small(&large));
}
