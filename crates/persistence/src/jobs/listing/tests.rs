use chrono::{DateTime, TimeDelta};
use domain::{Secrets, Work};
use serde_json::json;
use sqlx::PgPool;
use testkit::{command_job, job_at, tao_job};

use super::*;
use crate::{NewJob, Sealer};

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_page_is_filtered_and_cut_by_the_database(pool: PgPool) {
    let store = Store::from_pool(pool, Sealer::from_key([7; 32]));
    let at = |second| DateTime::UNIX_EPOCH + TimeDelta::seconds(second);
    let mut commands = Vec::new();
    for number in 1..=20 {
        let job =
            job_at(number, Work::Command { text: "true".to_owned() }, at(commands.len().try_into().unwrap()));
        commands.push(job);
    }
    let training = tao_job(21);
    for job in commands.iter().chain([&training]) {
        let new = NewJob { job: job.clone(), secrets: Secrets::default(), request_hash: [0; 32] };
        store.insert_job(&new).await.unwrap();
    }
    let page = async |filter: JobFilter| -> Vec<JobId> {
        store.list_jobs(&Viewer::All, &filter).await.unwrap().jobs.iter().map(|job| job.id).collect()
    };
    let newest: Vec<JobId> = commands.iter().rev().map(|job| job.id).collect();
    let first = JobFilter { limit: 3, ..JobFilter::default() };
    assert_eq!(page(first.clone()).await, newest[..3]);
    let after = Some((commands[17].created_at, commands[17].id));
    assert_eq!(page(JobFilter { after, ..first.clone() }).await, newest[3..6]);
    let trainings = JobFilter { action: Some("train".to_owned()), ..first };
    assert_eq!(page(trainings).await, [training.id]);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_text_is_a_part_of_the_name_or_of_a_label_or_the_beginning_of_an_id(pool: PgPool) {
    let store = Store::from_pool(pool, Sealer::from_key([7; 32]));
    let named = [
        ("Train a_b 100%", json!({"team": "Vision", "long": "x".repeat(63)})),
        ("train a-b 1000", json!({"über": "Ärger"})),
        ("", json!({"team": "speech\\audio"})),
    ];
    let mut ids = Vec::new();
    for (number, (name, labels)) in (1..).zip(named) {
        let job = command_job(number);
        let id = job.id.get();
        ids.push(job.id.to_string());
        store.insert_job(&NewJob { job, secrets: Secrets::default(), request_hash: [0; 32] }).await.unwrap();
        sqlx::query!("update jobs set name = nullif($2, ''), labels = $3 where id = $1", id, name, labels)
            .execute(&store.pool)
            .await
            .unwrap();
    }
    let found = async |text: &str| -> Vec<usize> {
        let filter = JobFilter { text: Some(text.to_owned()), limit: 10, ..JobFilter::default() };
        let page = store.list_jobs(&Viewer::All, &filter).await.unwrap();
        let jobs: Vec<usize> = page
            .jobs
            .iter()
            .map(|job| 1 + ids.iter().position(|id| *id == job.id.to_string()).unwrap())
            .rev()
            .collect();
        let counts = store.count_facets(&Viewer::All, &filter).await.unwrap();
        let counted: u64 =
            counts.iter().filter(|count| count.facet == JobFacet::Status).map(|count| count.jobs).sum();
        assert_eq!(counted, jobs.len() as u64, "{text}");
        jobs
    };
    let whole = &ids[1];
    let upper = ids[1].to_uppercase();
    for (text, jobs) in [
        ("TRAIN", &[1, 2][..]),
        ("a_b", &[1]),
        ("0%", &[1]),
        ("100", &[1, 2]),
        ("team:", &[1, 3]),
        ("m:vis", &[1]),
        ("ÜBER:ärg", &[2]),
        ("h\\a", &[3]),
        ("nothing", &[]),
        (whole, &[2]),
        (&upper, &[2]),
        (&whole[..35], &[1, 2, 3]),
        (&whole[1..], &[]),
        ("'", &[]),
        ("ü", &[2]),
    ] {
        assert_eq!(found(text).await, jobs, "{text}");
    }
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn an_unreadable_job_does_not_end_the_list(pool: PgPool) {
    let store = Store::from_pool(pool.clone(), Sealer::from_key([7; 32]));
    for number in 1..=3 {
        let at = DateTime::UNIX_EPOCH + TimeDelta::seconds(number);
        let number = u128::try_from(number).unwrap();
        let job = job_at(number, Work::Command { text: "true".to_owned() }, at);
        store.insert_job(&NewJob { job, secrets: Secrets::default(), request_hash: [0; 32] }).await.unwrap();
    }
    sqlx::query!(
        "update jobs set source = 'nobody' where created_at = $1",
        DateTime::UNIX_EPOCH + TimeDelta::seconds(2)
    )
    .execute(&pool)
    .await
    .unwrap();
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let filter = JobFilter { limit: 1, after, ..JobFilter::default() };
        let page = store.list_jobs(&Viewer::All, &filter).await.unwrap();
        seen.extend(page.jobs.iter().map(|job| job.created_at.timestamp()));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(seen, [3, 1]);
}
