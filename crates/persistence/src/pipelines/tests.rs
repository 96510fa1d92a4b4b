use std::time::Duration;

use chrono::DateTime;
use domain::{Need, NeedWhen, Phase, PipelineMember, Secrets, Status, Transition, after_needs};
use sqlx::PgPool;
use testkit::{Dice, command_job};
use uuid::Uuid;

use super::*;
use crate::{DueJobs as _, LeaseTerms, Needs as _, Sealer, StepRecords as _};

const NOW: Timestamp = DateTime::UNIX_EPOCH;

fn store(pool: PgPool) -> Store {
    Store::from_pool(pool, Sealer::from_key([7; 32]))
}

fn pipeline_id(number: u128) -> PipelineId {
    PipelineId::new(Uuid::from_u128(number))
}

/// A pipeline of jobs in a row, which have these numbers.
fn row(number: u128, jobs: std::ops::Range<u128>) -> NewPipeline {
    let id = pipeline_id(number);
    let first = jobs.start;
    let new = jobs.map(|at| {
        let job = command_job(at);
        let mut spec = job.spec;
        let name: domain::Word = format!("job{at}").parse().unwrap();
        let place = u32::try_from(at - first).unwrap();
        spec.pipeline = Some(PipelineMember { id: id.get(), name, place });
        let before = command_job(at.saturating_sub(1)).id.get();
        let need = Need { name: "before".parse().unwrap(), job: before, when: NeedWhen::Succeeded };
        spec.needs = if at > first { vec![need] } else { Vec::new() };
        let mut secrets = Secrets::default();
        secrets.env.insert("HF_TOKEN".parse().unwrap(), "hunter2".to_owned().into());
        NewJob {
            job: Job::accepted(job.id, job.owner, job.cluster, spec, NOW),
            secrets,
            request_hash: [0; 32],
        }
    });
    let jobs: Vec<_> = new.collect();
    let owner = jobs[0].job.owner.clone();
    let labels = [("team".to_owned(), "vision".to_owned())].into();
    let pipeline = Pipeline { id, owner, name: "nightly".parse().ok(), labels, created_at: NOW };
    NewPipeline { pipeline, jobs, webhooks: vec![], incarnations: vec![], request_hash: [1; 32] }
}

async fn insert(store: &Store, new: &NewPipeline) -> InsertedPipeline {
    store.insert_pipeline(new, None).await.unwrap()
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_pipeline_is_stored_as_it_was_sent(pool: PgPool) {
    let store = store(pool);
    let new = row(1, 10..13);
    assert!(matches!(insert(&store, &new).await, InsertedPipeline::Created));
    assert!(matches!(insert(&store, &new).await, InsertedPipeline::Same));
    let found = store.find_pipeline(pipeline_id(1), &Viewer::All).await.unwrap();
    assert_eq!(found.as_ref(), Some(&new.pipeline));
    let jobs = store.pipeline_jobs(pipeline_id(1)).await.unwrap();
    assert_eq!(jobs.iter().map(|job| job.id).collect::<Vec<_>>(), [10, 11, 12].map(|n| command_job(n).id));
    assert_eq!(jobs[1], new.jobs[1].job, "nothing of it is lost");
    assert_eq!(
        jobs.iter().map(|job| job.phase).collect::<Vec<_>>(),
        [Phase::Queued, Phase::Waiting, Phase::Waiting]
    );
    let page = store.list_pipelines(&Viewer::All, None, 10).await.unwrap();
    let counts = PipelineCounts { total: 3, pending: 3, ..PipelineCounts::default() };
    assert_eq!((page.pipelines, page.next), (vec![(new.pipeline, counts)], None));
    let stranger = Viewer::Owner(domain::Owner::new("stranger"));
    assert!(store.find_pipeline(pipeline_id(1), &stranger).await.unwrap().is_none());
    assert!(store.list_pipelines(&stranger, None, 10).await.unwrap().pipelines.is_empty());
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn of_a_pipeline_that_is_refused_nothing_is_stored(pool: PgPool) {
    let store = store(pool);
    insert(&store, &row(1, 10..12)).await;
    let mut other = row(1, 20..22);
    other.request_hash = [2; 32];
    assert!(matches!(insert(&store, &other).await, InsertedPipeline::Other));
    let taken = insert(&store, &row(2, 11..14)).await;
    assert!(matches!(taken, InsertedPipeline::JobTaken(id) if id == command_job(11).id), "{taken:?}");
    let mut unknown = row(3, 30..33);
    unknown.jobs[2].job.spec.needs[0].job = Uuid::from_u128(99);
    let refused = insert(&store, &unknown).await;
    let expected = vec![(command_job(32).id, 0)];
    assert!(matches!(&refused, InsertedPipeline::NeedsUnknown(places) if *places == expected), "{refused:?}");
    let mut gone = row(4, 40..42);
    gone.incarnations = vec![("dgx".parse().unwrap(), 7)];
    assert!(matches!(insert(&store, &gone).await, InsertedPipeline::ClusterGone(_)));
    assert_eq!(store.list_pipelines(&Viewer::All, None, 10).await.unwrap().pipelines.len(), 1);
    let all = sqlx::query_scalar::<_, i64>("select count(*) from jobs").fetch_one(&store.pool).await.unwrap();
    assert_eq!(all, 2);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn all_jobs_of_a_pipeline_are_canceled_together(pool: PgPool) {
    let store = store(pool);
    insert(&store, &row(1, 10..13)).await;
    insert(&store, &row(2, 20..22)).await;
    let first = command_job(10).id.get();
    sqlx::query!(
        "update jobs set phase = 'ended', status = 'Done', finished_at = now(), due_at = null, secrets = null where id = $1",
        first
    )
    .execute(&store.pool)
    .await
    .unwrap();
    assert_eq!(store.cancel_pipeline(pipeline_id(1), NOW).await.unwrap(), 2);
    assert_eq!(store.cancel_pipeline(pipeline_id(1), NOW).await.unwrap(), 0, "once is enough");
    let statuses = async |id| {
        let jobs = store.pipeline_jobs(pipeline_id(id)).await.unwrap();
        jobs.iter().map(|job| job.status).collect::<Vec<_>>()
    };
    assert_eq!(statuses(1).await, [Status::Done, Status::Canceling, Status::Canceling]);
    assert_eq!(statuses(2).await, [Status::Pending, Status::Pending]);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn pages_follow_one_another_and_pipelines_without_jobs_are_deleted(pool: PgPool) {
    let store = store(pool);
    for number in 1..=3 {
        insert(&store, &row(number, number * 10..number * 10 + 2)).await;
    }
    let page = store.list_pipelines(&Viewer::All, None, 2).await.unwrap();
    let rest = store.list_pipelines(&Viewer::All, page.next, 2).await.unwrap();
    let ids = |page: &PipelinePage| {
        page.pipelines.iter().map(|(one, _)| one.id.get().as_u128()).collect::<Vec<_>>()
    };
    assert_eq!((ids(&page), ids(&rest), rest.next), (vec![3, 2], vec![1], None));
    sqlx::query!(
        "update jobs set phase = 'ended', status = 'Done', finished_at = now(), due_at = null, secrets = null"
    )
    .execute(&store.pool)
    .await
    .unwrap();
    sqlx::query!("delete from jobs where spec #>> '{pipeline,id}' = $1", pipeline_id(2).to_string())
        .execute(&store.pool)
        .await
        .unwrap();
    assert_eq!(store.delete_empty_pipelines().await.unwrap(), 1);
    assert_eq!(ids(&store.list_pipelines(&Viewer::All, None, 9).await.unwrap()), [3, 1]);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn the_largest_pipeline_is_two_statements_for_all_its_jobs(pool: PgPool) {
    let store = store(pool);
    assert!(matches!(insert(&store, &row(1, 1000..2000)).await, InsertedPipeline::Created));
    assert_eq!(store.pipeline_jobs(pipeline_id(1)).await.unwrap().len(), 1000);
}

/// How a job ends if it is submitted, and whether it begins.
type End = (Status, bool);
/// A job of the graph: the earlier ones that it needs, and how it ends.
type Node = (Vec<(usize, NeedWhen)>, End);

const ENDS: [End; 4] =
    [(Status::Done, true), (Status::Done, true), (Status::Error, true), (Status::Canceled, false)];

/// The end of each job by the rules that callers are told; `None` for one that is never submitted.
fn model(jobs: &[Node]) -> Vec<Option<End>> {
    let mut ends: Vec<Option<End>> = Vec::new();
    for (needs, end) in jobs {
        let is_met = |(of, when): &(usize, NeedWhen)| {
            let (status, began) = ends[*of].unwrap_or((Status::Canceled, false));
            match when {
                NeedWhen::Succeeded | NeedWhen::Each => status == Status::Done,
                NeedWhen::Failed => status == Status::Error,
                NeedWhen::Finished => true,
                NeedWhen::Started => began,
            }
        };
        ends.push(needs.iter().all(is_met).then_some(*end));
    }
    ends
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn the_jobs_of_a_random_graph_end_as_the_rules_say(pool: PgPool) {
    let store = store(pool);
    for seed in 0..10 {
        let mut dice = Dice::new(seed);
        let whens = [
            NeedWhen::Succeeded,
            NeedWhen::Succeeded,
            NeedWhen::Failed,
            NeedWhen::Finished,
            NeedWhen::Started,
        ];
        let mut graph: Vec<Node> = Vec::new();
        for at in 0..500_usize {
            let count = if at == 0 { 0 } else { dice.below(4) };
            let mut needs: Vec<(usize, NeedWhen)> = (0..count)
                .map(|_| (usize::try_from(dice.below(at as u64)).unwrap(), dice.one_of(&whens)))
                .collect();
            needs.dedup_by_key(|(of, _)| *of);
            graph.push((needs, dice.one_of(&ENDS)));
        }
        let mut new = row(1, 1..501);
        for (job, (needs, _)) in new.jobs.iter_mut().zip(&graph) {
            let named = needs.iter().enumerate().map(|(place, (of, when))| Need {
                name: place.to_string().parse().unwrap(),
                job: command_job(*of as u128 + 1).id.get(),
                when: *when,
            });
            let Job { id, owner, cluster, mut spec, .. } = job.job.clone();
            spec.needs = named.collect();
            job.job = Job::accepted(id, owner, cluster, spec, NOW);
        }
        assert!(matches!(insert(&store, &new).await, InsertedPipeline::Created));
        let mut token = 1;
        loop {
            token += 1;
            let terms = LeaseTerms { duration: Duration::from_secs(30), limit: 100, only_stopped: false };
            let cluster = "dgx".parse().unwrap();
            let mut lease =
                store.acquire_due(&cluster, Lane::Submit, Uuid::from_u128(token), terms).await.unwrap();
            let jobs = std::mem::take(&mut lease.jobs);
            if jobs.is_empty() {
                break;
            }
            let ids: Vec<_> = jobs.iter().map(|job| job.id).collect();
            let needed = store.needed(&ids).await.unwrap();
            let (mut steps, mut later) = (vec![], vec![]);
            for job in jobs {
                let (status, began) = graph[usize::try_from(job.id.get().as_u128()).unwrap() - 1].1;
                if job.phase == Phase::Waiting {
                    let Transition { job, due_at } = after_needs(&job, &needed[&job.id], NOW);
                    steps.push(Transition { job, due_at });
                } else if dice.chance(300) {
                    later.push(job);
                } else {
                    let (phase, finished_at) = (Phase::Ended, Some(NOW));
                    let job = Job { status, phase, finished_at, started_at: began.then_some(NOW), ..job };
                    steps.push(Transition { job, due_at: None });
                }
            }
            store.record_steps(&lease, &steps, NOW).await.unwrap();
            store.put_off(&lease, &later, Some(Duration::ZERO)).await.unwrap();
        }
        let jobs = store.pipeline_jobs(pipeline_id(1)).await.unwrap();
        for (at, (job, end)) in jobs.iter().zip(model(&graph)).enumerate() {
            let (status, began) = end.unwrap_or((Status::Canceled, false));
            assert_eq!(
                (job.status, job.started_at.is_some()),
                (status, began),
                "seed {seed}, job {at}: {}",
                job.message
            );
            assert_eq!(job.message.starts_with("Canceled: it needs"), end.is_none(), "seed {seed}, job {at}");
        }
        sqlx::raw_sql("delete from jobs; delete from deleted_jobs; delete from pipelines")
            .execute(&store.pool)
            .await
            .unwrap();
    }
}
