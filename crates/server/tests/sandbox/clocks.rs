//! Machines whose clocks differ.

use chrono::{DateTime, TimeDelta, Utc};

use crate::{cluster::sql, ending::command, service::Service};

#[test]
#[expect(clippy::disallowed_methods, reason = "the machine's own clock is what the service is held against")]
fn the_service_uses_the_clock_of_the_database() {
    let mut service = Service::prepare(&[]);
    // The database is a day ahead, because a function overrides that of Postgres.
    let (_, name) = service.database_url.rsplit_once('/').unwrap();
    let ahead = format!(
        "create function public.clock_timestamp() returns timestamptz language sql
             as $$ select pg_catalog.clock_timestamp() + interval '1 day' $$;
         alter database {name} set search_path = public, pg_catalog"
    );
    sql(&service.database_url, &ahead);
    service.spawn();
    let id = service.submit(&command("true"));
    assert_eq!(service.wait_ended(&id)["status"], "Done");
    let job = service.get(&format!("/jobs/{id}")).json();
    for at in ["created_on", "last_modified"] {
        let at: DateTime<Utc> = job[at].as_str().unwrap_or_else(|| panic!("{at}: {job}")).parse().unwrap();
        let ahead = at - Utc::now();
        assert!((ahead - TimeDelta::days(1)).abs() < TimeDelta::minutes(5), "{ahead}: {job}");
    }
}
