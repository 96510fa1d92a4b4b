use api::AuthMode;
use axum::{body::Body, http::Request};

use crate::support::TestApi;

#[tokio::test]
async fn a_parameter_that_nobody_reads_is_refused_by_its_name() {
    let api = TestApi::offline(AuthMode::Disabled);
    let job = "/jobs/0f8fad5b-d9cb-469f-a165-70867728950e";
    for (method, path) in [
        ("GET", job.to_owned()),
        ("GET", format!("{job}/status")),
        ("GET", format!("{job}/logs")),
        ("POST", format!("{job}/cancel")),
        ("GET", "/jobs".to_owned()),
    ] {
        let request = Request::builder().method(method).uri(format!("{path}?watch=1"));
        let answer = api.send(request.body(Body::empty()).unwrap()).await;
        let problem = answer.problem(400, "invalid_parameter");
        let error = &problem["errors"][0];
        assert_eq!(
            (&error["parameter"], &error["code"]),
            (&"watch".into(), &"unknown_parameter".into()),
            "{path}"
        );
    }
}
