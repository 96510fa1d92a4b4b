//! Deliveries over HTTPS to receivers with trusted and untrusted certificates.

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::{ServerConfig, crypto::ring, pki_types::PrivateKeyDer};
use sqlx::PgPool;
use std::sync::Arc;
use webhooks::Authorities;

use crate::{Bench, HERE, is_through, receiver::Receiver};

/// A private certificate authority.
struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut own = CertificateParams::new(Vec::new()).unwrap();
        own.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(own, KeyPair::generate().unwrap()).unwrap())
    }

    fn pem(&self) -> Authorities {
        Authorities::with(self.0.pem().as_bytes()).unwrap()
    }

    /// A receiver with a certificate of this authority for the name.
    fn certify(&self, name: &str) -> Receiver {
        let key = KeyPair::generate().unwrap();
        let certificate =
            CertificateParams::new([name.to_owned()]).unwrap().signed_by(&key, &self.0).unwrap();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap();
        Receiver::certified(config)
    }
}

/// The result of one attempt: `delivered`, or the error.
async fn attempt(pool: &PgPool, receiver: &Receiver, trusted: Authorities) -> String {
    let bench = Bench::at(pool.clone(), receiver.url_by_name()).await;
    let history = bench.until(&[bench.trusting(trusted, HERE, 1)], is_through).await;
    sqlx::raw_sql("delete from jobs; delete from deleted_jobs").execute(pool).await.unwrap();
    let one = &history.deliveries[0];
    one.error.clone().unwrap_or_else(|| one.state.clone())
}

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn a_private_certificate_authority_is_trusted_once_it_is_configured(pool: PgPool) {
    let (ours, another) = (Authority::new(), Authority::new());
    let receiver = ours.certify("localhost");
    assert_eq!(attempt(&pool, &receiver, ours.pem()).await, "delivered");
    assert_eq!(receiver.next().body["data"]["status"], "Pending");
    for (receiver, trusted, why) in [
        (&receiver, Authorities::default(), "UnknownIssuer"),
        // It has the same name, but did not sign this certificate.
        (&receiver, another.pem(), "BadSignature"),
        (&ours.certify("elsewhere.example"), ours.pem(), "not valid for name"),
    ] {
        let error = attempt(&pool, receiver, trusted).await;
        assert!(error.contains(why), "{error}");
        assert!(receiver.is_quiet(), "an untrusted receiver got a message");
    }
}
