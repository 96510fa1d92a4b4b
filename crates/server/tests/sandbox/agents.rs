//! Tools for agents: the official client and the official inspector list and call them with a real cluster.

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use crate::{cluster::sql, service::Service};

const HERE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sandbox/agents");
/// Installed by `ci/setup --test`.
const TOOLS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../.tools");

fn with_tokens() -> Service {
    Service::start_with(&[("TAO_SLURM_AUTH", "tokens")])
}

fn token(service: &Service, owner: &str, scopes: &str) -> String {
    let made = service.run(&["token", "create", "--owner", owner, "--scope", scopes]);
    String::from_utf8(made.stdout).unwrap().trim().to_owned()
}

fn tool(name: &str) -> String {
    let path = format!("{TOOLS}/{name}");
    assert!(Path::new(&path).exists(), "{path} is not installed; run ci/setup --test");
    path
}

#[test]
fn an_agent_gets_from_a_failure_to_a_retry_with_more_memory_by_tools_alone() {
    let service = Service::start_with(&[("TAO_SLURM_AUTH", "tokens"), ("TAO_SLURM_LOG", "info,rmcp=trace")]);
    let mut agent = Command::new(tool("mcp/bin/python3"))
        .args(["-I", &format!("{HERE}/agent.py")])
        .env_clear()
        .envs([("TAO_SLURM_URL", &service.url), ("TAO_SLURM_TOKEN", &token(&service, "ann", "read,write"))])
        .envs([("READER", token(&service, "ann", "read")), ("OTHER", token(&service, "ben", "read,write"))])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = Vec::new();
    for line in BufReader::new(agent.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        if let Some(slurm_id) = line.strip_prefix("hungry ") {
            // As Slurm ends a job that used more memory than it has.
            service.sandbox.admin(&["complete-job", slurm_id, "253"]);
        }
        said.push(line);
    }
    assert!(agent.wait().unwrap().success(), "{said:?}\n{}", service.log_text());
    assert_eq!(said.last().map(String::as_str), Some("all done"));
    assert!(!service.log_text().contains("hf_planted"), "a secret of an argument is in the log");
    let names = "select count(*) from jobs where name = 'hungry'";
    assert_eq!(sql(&service.database_url, names).trim(), "2", "a repeated call stored a job of its own");
}

/// One run of the inspector.
fn inspect(service: &Service, token: &str, arguments: &[&str]) -> Result<Value, String> {
    let home = tempfile::tempdir().unwrap();
    let output = Command::new("node")
        .arg("index.js")
        // It looks for its version from here.
        .current_dir(tool("inspector/node_modules/@modelcontextprotocol/inspector-cli/build"))
        .args([&format!("{}/mcp", service.url), "--transport", "http"])
        .args(["--header", &format!("Authorization: Bearer {token}")])
        .args(arguments)
        .env_clear()
        .envs([("HOME", home.path().to_str().unwrap()), ("PATH", "/usr/local/bin:/usr/bin:/bin")])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let read = || serde_json::from_str(&text).map_err(|error| format!("{error}: {text}"));
    if output.status.success() {
        read()
    } else {
        Err(format!("{text}{}", String::from_utf8_lossy(&output.stderr)))
    }
}

#[test]
fn the_inspector_lists_the_tools_and_calls_each() {
    let service = with_tokens();
    let token = token(&service, "ann", "read,write");
    let listed = inspect(&service, &token, &["--method", "tools/list"]).unwrap();
    let tools = listed["tools"].as_array().unwrap();
    assert_eq!(tools.len(), 9, "{listed}");
    assert!(inspect(&service, "tsl_wrong", &["--method", "tools/list"]).is_err());

    let call = |name: &str, pairs: &[&str]| {
        let pairs = pairs.iter().flat_map(|pair| ["--tool-arg", pair]);
        let arguments: Vec<_> =
            ["--method", "tools/call", "--tool-name", name].into_iter().chain(pairs).collect();
        inspect(&service, &token, &arguments).unwrap_or_else(|error| panic!("{name}: {error}"))
    };
    let job = json!({"command": "echo hello; exit 3", "resources": {"gpus_per_node": 0, "cpus_per_task": 1, "time_hours": 0.1}});
    let job = format!("job={job}");
    let stored = call("submit_job", &[&job, "dry_run=false", "idempotency_key=inspected"]);
    let id = stored["structuredContent"]["job_id"].as_str().unwrap().to_owned();
    let id = format!("job_id={id}");
    let mut ended = Value::Null;
    while ended["ended"] != true {
        ended = call("get_status", &[&id, "wait_seconds=30"])["structuredContent"].clone();
    }
    assert_eq!(ended["job"]["status"], "Error", "{ended}");
    assert_eq!(call("get_logs", &[&id, "stream=out"])["structuredContent"]["text"], "hello\n");
    assert_eq!(call("explain_job", &[&id])["structuredContent"]["diagnosis"]["attempt"], 1);
    assert_eq!(call("retry_job", &[&id])["structuredContent"]["is_new_job"], false);
    assert_eq!(call("cancel_job", &[&id])["isError"], false);
    assert_eq!(call("list_jobs", &[])["structuredContent"]["jobs"].as_array().unwrap().len(), 1);
    assert_eq!(call("list_partitions", &[])["structuredContent"]["clusters"]["items"][0]["name"], "sandbox");
    assert_ne!(call("preflight", &["cluster=sandbox"])["structuredContent"]["outcome"], "fail");
}
