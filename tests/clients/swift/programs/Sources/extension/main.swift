// Plays iOS for the extension of the guide: hands it the payload on each line of standard input, and
// prints the notification that it makes of it.
import Foundation
import UserNotifications

func say(_ what: [String: Any]) {
    let data = try! JSONSerialization.data(withJSONObject: what)
    FileHandle.standardOutput.write(data + Data("\n".utf8))
}

registerCategories()
say(["categories": UNUserNotificationCenter.current().categories.map(\.identifier)])

while let line = readLine() {
    let payload = try! JSONSerialization.jsonObject(with: Data(line.utf8)) as! [String: Any]
    let isLate = payload["late"] != nil
    let shown = await withCheckedContinuation { (continuation: CheckedContinuation<[String], Never>) in
        let service = NotificationService()
        let request = UNNotificationRequest(UNNotificationContent(userInfo: payload))
        service.didReceive(request) { content in
            continuation.resume(returning: content.attachments.map(\.url.path))
        }
        if isLate { service.serviceExtensionTimeWillExpire() }
    }
    say(["attached": shown])
}
