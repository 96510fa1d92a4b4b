//! Sends a job, waits for its end and prints its log, by the generated client. Arguments: the address, and a token.

#![allow(warnings, reason = "the modules are the generator's")]

mod apis;
mod models;

use apis::{configuration::Configuration, jobs_api as jobs};
use models::{JobRequest, ResourcesRequest, Status};

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let service = Configuration {
        base_path: arguments.next().expect("the address"),
        bearer_access_token: arguments.next(),
        ..Configuration::default()
    };
    let resources =
        ResourcesRequest { num_gpus: Some(Some(0)), time_hours: Some(Some(0.1)), ..ResourcesRequest::default() };
    let request = JobRequest {
        name: Some(Some("from Rust".to_owned())),
        command: Some(Some("echo hello from Rust".to_owned())),
        resources: Some(Some(Box::new(resources))),
        ..JobRequest::default()
    };
    let job = jobs::create_job(&service, request, Some("rust"), None).await.expect("the job to be stored");
    assert_eq!((job.name.as_deref(), job.resources.gpus_per_node), (Some("from Rust"), 0));

    let id = job.id.to_string();
    let mut status = job.status;
    while !matches!(status, Status::Done | Status::Error | Status::Canceled) {
        status = jobs::get_job_status(&service, &id, Some(20), None).await.expect("its status").status;
    }
    println!("{status} {id}");
    let log = jobs::get_job_logs(&service, &id, Some("out"), None, None, None, None, None, None, None, None, None);
    println!("{}", log.await.expect("its log"));
}
