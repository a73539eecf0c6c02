//! The `web-push` crate, for bench/: as it is, which signs each message ("web-push"), and with a
//! signature that the caller keeps ("web-push-kept"). bench/peers/__init__.py says how such a
//! program is called.

use std::io::{self, BufRead};

use futures_util::stream::{self, StreamExt};
use serde::Deserialize;
use web_push::{
    ContentEncoding, HyperWebPushClient, PartialVapidSignatureBuilder, SubscriptionInfo,
    VapidSignature, VapidSignatureBuilder, WebPushClient, WebPushError, WebPushMessageBuilder,
};

#[derive(Deserialize)]
struct Device {
    endpoint: String,
    p256dh: String,
    auth: String,
}

#[derive(Deserialize)]
struct Vapid {
    private: String,
    subject: String,
}

#[derive(Deserialize)]
struct Work {
    payload: String,
    web: Vec<Device>,
    vapid: Vapid,
}

struct Sender {
    client: HyperWebPushClient,
    key: PartialVapidSignatureBuilder,
    subject: String,
    payload: String,
    kept: Option<VapidSignature>,
}

impl Sender {
    fn signature(&self, device: &SubscriptionInfo) -> Result<VapidSignature, WebPushError> {
        let mut builder = self.key.clone().add_sub_info(device);
        builder.add_claim("sub", self.subject.as_str());
        builder.build()
    }

    async fn send(&self, device: &SubscriptionInfo) -> Result<(), WebPushError> {
        let mut message = WebPushMessageBuilder::new(device);
        message.set_payload(ContentEncoding::Aes128Gcm, self.payload.as_bytes());
        message.set_ttl(3600);
        let signature = match &self.kept {
            Some(kept) => kept.clone(),
            None => self.signature(device)?,
        };
        message.set_vapid_signature(signature);
        self.client.send(message.build()?).await
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let count: usize = arguments[3].parse().unwrap();
    let in_flight: usize = arguments[4].parse().unwrap();
    let text = std::fs::read_to_string(&arguments[2]).unwrap();
    let work: Work = serde_json::from_str(&text).unwrap();
    let devices: Vec<SubscriptionInfo> = work
        .web
        .iter()
        .map(|device| SubscriptionInfo::new(&device.endpoint, &device.p256dh, &device.auth))
        .collect();
    let mut sender = Sender {
        client: HyperWebPushClient::new(),
        key: VapidSignatureBuilder::from_base64_no_sub(&work.vapid.private).unwrap(),
        subject: work.vapid.subject,
        payload: work.payload,
        kept: None,
    };
    if arguments[1] == "web-push-kept" {
        sender.kept = Some(sender.signature(&devices[0]).unwrap());
    }

    let mut orders = io::stdin().lock().lines();
    println!("ready");
    orders.next();
    let answers = stream::iter(&devices[..count])
        .map(|device| sender.send(device))
        .buffer_unordered(in_flight);
    let failed = answers
        .fold(0, |failed, answer| async move {
            match answer {
                Ok(()) => failed,
                Err(error) => {
                    if failed == 0 {
                        eprintln!("{error:?}");
                    }
                    failed + 1
                }
            }
        })
        .await;
    println!("failed {failed}");
    orders.next();
}
