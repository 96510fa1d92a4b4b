use api::AuthMode;
use axum::{body::Body, http::Request};

use crate::{document::operations, support::TestApi};

#[tokio::test]
async fn an_unknown_parameter_is_refused_by_name_in_every_call() {
    let api = TestApi::offline(AuthMode::Disabled);
    for (method, path, operation) in operations() {
        let path = path
            .replace("{id}", "0f8fad5b-d9cb-469f-a165-70867728950e")
            .replace("{task}", "0")
            .replace("{token}", "0f8fad5b-d9cb-469f-a165-70867728950e")
            .replace("{name}", "dgx");
        let request = Request::builder()
            .method(method.to_uppercase().as_str())
            .uri(format!("{path}?watch=1"))
            .header("content-type", "application/json");
        let body = if operation["requestBody"].is_null() { Body::empty() } else { Body::from("{}") };
        let answer = api.send(request.body(body).unwrap()).await;
        let problem = answer.problem(400, "invalid_parameter");
        let error = &problem["errors"][0];
        assert_eq!(
            (&error["parameter"], &error["code"]),
            (&"watch".into(), &"unknown_parameter".into()),
            "{method} {path}"
        );
    }
}
