//! The search in logs of a real cluster.

use serde_json::{Value, json};

use crate::{
    ending::command,
    logs::{get, log_dir},
    service::Service,
};

#[test]
fn a_log_of_a_gigabyte_is_searched_on_the_cluster() {
    let service = Service::start();
    let id = service.submit(&command("echo begin; echo 'RuntimeError: here' >&2"));
    let ended = service.wait_ended(&id);
    let file = format!("{}/main.out", log_dir(&service, &ended, 1));
    service.sandbox.login(&format!(
        "head -c 1000000000 <(yes 'the same line, again and again') >> '{file}'; printf '\\nthe needle \\xff\\n' >> '{file}'"
    ));
    let size: u64 = service.sandbox.login(&format!("stat -c %s '{file}'")).parse().unwrap();
    let search = |query: &str| -> Value {
        let answer = get(&service, &format!("/jobs/{id}/logs/search?{query}"));
        serde_json::from_slice(&answer.bytes).unwrap()
    };
    // On a busy machine one search may not come to the end.
    let (mut from, mut hits) = (0, Vec::new());
    while from < size {
        let found = search(&format!("stream=out&q=needle&from={from}"));
        let log = &found["logs"][0];
        assert!(log["to"].as_u64().unwrap() > from, "{found}");
        from = log["to"].as_u64().unwrap();
        hits.extend(found["hits"].as_array().unwrap().clone());
    }
    assert_eq!(hits.len(), 1, "{hits:?}");
    assert_eq!((&hits[0]["excerpt"], &hits[0]["offset"]), (&json!("the needle \u{fffd}"), &json!(size - 9)));
    let there = get(&service, &format!("/jobs/{id}/logs?stream=out&offset={}&limit=6", size - 9));
    assert_eq!(there.bytes, b"needle");
    let error = search("stream=err&q=(begin|runtimeerror)&regex=true&ignore_case=true");
    assert_eq!((&error["hits"][0]["log"], &error["complete"]), (&json!("main.err"), &json!(true)));
    assert_eq!(search("q=(&regex=true")["errors"][0]["code"], "invalid_pattern");
    service.sandbox.login(&format!("rm '{file}'"));
}
