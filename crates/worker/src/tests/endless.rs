//! What a job can write without end costs the cluster a bounded number of commands.

use super::*;

impl Bench {
    /// Lets time pass until the job is due, and makes it due.
    async fn await_due(&self, id: JobId) {
        let row =
            sqlx::query_scalar("select extract(epoch from due_at - now())::float8 from jobs where id = $1");
        let seconds: f64 = row.bind(id.get()).fetch_one(&self.pool).await.unwrap();
        self.clock.advance(TimeDelta::from_std(Duration::from_secs_f64(seconds.max(0.0))).unwrap());
        self.make_due().await;
    }
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_status_file_without_end_is_read_with_pauses_and_not_for_ever(pool: PgPool) {
    let bench = Bench::new(pool);
    let (id, name) = bench.submitted().await;
    bench.fake.write_without_end(&name);
    bench.fake.set_state(&name, &SlurmState::Completed, Some(0));
    bench.poll().await;
    let (before, began) = (bench.fake.commands(), bench.clock.now());
    while bench.status(id).await.1 != Phase::Ended {
        assert_eq!(bench.step(Lane::Follow).await, 1);
        assert_eq!(bench.step(Lane::Follow).await, 0, "no step is repeated without a pause");
        let rounds = bench.fake.commands() - before;
        assert!(rounds <= 50, "{rounds} commands in {}", bench.clock.now() - began);
        if bench.status(id).await.1 != Phase::Ended {
            bench.await_due(id).await;
        }
    }
    assert_eq!(bench.status(id).await.0, Status::Done);
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn an_exit_record_that_never_comes_is_looked_for_a_bounded_number_of_times(pool: PgPool) {
    let bench = Bench::new(pool);
    let (id, name) = bench.submitted().await;
    bench.fake.set_state(&name, &SlurmState::Completed, None);
    bench.poll().await;
    let before = bench.fake.commands();
    while bench.status(id).await.1 != Phase::Ended {
        assert_eq!(bench.step(Lane::Follow).await, 1);
        let rounds = bench.fake.commands() - before;
        assert!(rounds <= 20, "{rounds} commands");
        if bench.status(id).await.1 != Phase::Ended {
            bench.await_due(id).await;
        }
    }
}
