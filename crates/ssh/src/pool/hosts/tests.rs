use super::*;

fn host(name: &str) -> HostPort {
    name.parse().expect("a host")
}

fn down(name: &str) -> SshError {
    crate::keys::auth::cannot_connect(&host(name), "no route")
}

fn refused(name: &str) -> SshError {
    SshError::AuthRefused {
        host: host(name),
        user: "me".to_owned(),
        tried: vec!["a key".to_owned()],
        reason: "no".to_owned(),
    }
}

fn three() -> (SshConfig, Hosts) {
    let config = SshConfig::new("me", vec![host("a"), host("b"), host("c")]);
    let hosts = Hosts::new(&config.hosts);
    (config, hosts)
}

#[test]
fn the_configured_order_counts_until_a_session_is_open() {
    let (config, hosts) = three();
    assert_eq!(hosts.candidates(None, &config), [0, 1, 2]);
    hosts.begin_connect(1).expect("a turn");
    hosts.connected(1);
    assert_eq!(hosts.candidates(None, &config), [1, 0, 2], "a second session goes elsewhere");
    hosts.disconnected();
    assert_eq!(hosts.candidates(None, &config), [0, 1, 2], "the first host is forgotten");
}

#[test]
fn a_host_whose_link_was_lost_comes_last_but_is_not_left_alone() {
    let (config, hosts) = three();
    assert_eq!(hosts.candidates(Some(&host("a")), &config), [1, 2, 0]);
}

#[test]
fn a_host_that_failed_is_left_alone_and_its_failures_are_forgotten_once_it_works() {
    let (config, hosts) = three();
    hosts.begin_connect(0).expect("a turn");
    hosts.refused(0, down("a"), &config);
    assert_eq!(hosts.candidates(None, &config), [1, 2]);
    assert!(
        matches!(hosts.health()[0].state, HostState::Down { .. }) && hosts.health()[0].next_try.is_some()
    );
    hosts.connected(0);
    assert_eq!(hosts.candidates(None, &config), [0, 1, 2]);
    let health = &hosts.health()[0];
    assert!(health.state == HostState::Up && health.next_try.is_none() && health.last_error.is_some());
}

#[test]
fn the_start_of_a_row_of_failures_is_kept_and_a_failure_of_another_kind_begins_a_new_one() {
    let (config, hosts) = three();
    let since = |hosts: &Hosts| hosts.health()[0].state.since();
    hosts.refused(0, down("a"), &config);
    let first = since(&hosts);
    hosts.refused(0, down("a"), &config);
    assert_eq!(since(&hosts), first);
    hosts.refused(0, refused("a"), &config);
    assert!(since(&hosts) > first && matches!(hosts.health()[0].state, HostState::AuthRefused { .. }));
}

#[test]
fn connects_to_one_host_are_spaced_and_those_to_another_do_not_wait() {
    let (config, hosts) = three();
    let begun = Instant::now();
    hosts.begin_connect(0).expect("a turn");
    hosts.begin_connect(1).expect("a turn");
    assert!(begun.elapsed() < PACE);
    hosts.connected(0);
    hosts.begin_connect(0).expect("a turn");
    assert!(begun.elapsed() >= PACE, "only {:?} apart", begun.elapsed());
    hosts.refused(0, down("a"), &config);
    assert_eq!(hosts.connects_total(), 3);
}

#[test]
fn whoever_waits_for_a_connect_that_fails_does_not_try_the_same_again() {
    let (config, hosts) = three();
    hosts.begin_connect(0).expect("a turn");
    let second = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| hosts.begin_connect(0));
        // Two connects in a row take the length of the pace: by then the other one is waiting.
        hosts.begin_connect(1).expect("a turn");
        hosts.connected(1);
        hosts.begin_connect(1).expect("a turn, after the pace");
        hosts.refused(0, down("a"), &config);
        waiting.join().expect("no panic")
    });
    assert_eq!(second, None);
}

#[test]
fn refusals_keep_their_kind_only_when_there_is_nothing_else() {
    let (config, hosts) = three();
    hosts.refused(0, refused("a"), &config);
    hosts.refused(1, refused("b"), &config);
    assert_eq!(hosts.verdict(), refused("a"));
    hosts.refused(2, down("c"), &config);
    let SshError::Unreachable { failures } = hosts.verdict() else { panic!("not a mixture") };
    let names: Vec<String> = failures.iter().map(|failure| failure.host.to_string()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert!(failures[0].advice.contains("authorized_keys"));
}
