//! `/docs`: Swagger UI with the API's document.

use super::{Browser, service, token};

#[test]
fn a_token_stays_after_a_reload() {
    let service = service();
    let browser = Browser::start(&service.url);
    let button = ".auth-wrapper > .authorize";
    browser.open("/docs/");
    browser.sees(&format!("{button}.unlocked"), "Authorize");
    browser.click(button);
    browser.fill(".dialog-ux #auth-bearer-value", &token(&service, "ann", "read"));
    browser.click(".dialog-ux .auth.authorize");
    browser.click(".dialog-ux .btn-done");
    browser.sees(&format!("{button}.locked"), "Authorize");

    browser.open("/docs/");
    browser.sees(&format!("{button}.locked"), "Authorize");
    browser.click("#operations-jobs-list_jobs .opblock-summary-control");
    browser.click("#operations-jobs-list_jobs .try-out__btn");
    browser.click("#operations-jobs-list_jobs .execute");
    browser.sees("#operations-jobs-list_jobs tr.response .response-col_status", "200");
    assert_eq!(browser.complaints(), [""; 0]);
}
