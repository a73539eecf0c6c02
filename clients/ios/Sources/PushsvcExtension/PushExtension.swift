#if canImport(UserNotifications)
import Foundation
import Pushsvc
import UserNotifications

/// The work of a notification service extension: reports that a notification was received, and
/// attaches its image. Make one for the process.
public final class PushExtension: Sendable {
    private let reports: PushReports

    /// `service` is the address of pushsvc. The store must not be the app's.
    public init(service: URL, store: any PushStore = FileStore()) {
        reports = PushReports(service: service, store: store, timeout: 5) // the notification waits for it
    }

    /// Call this in `didReceive(_:withContentHandler:)`, and keep the result.
    public func handle(
        _ request: UNNotificationRequest, _ handler: @escaping (UNNotificationContent) -> Void
    ) -> PushExtensionWork {
        let work = PushExtensionWork(request.content, handler)
        guard let message = PushMessage(userInfo: request.content.userInfo) else {
            work.finish() // not from pushsvc
            return work
        }
        Task { [reports] in
            async let report: Void = reports.report(.received, of: message)
            if let url = message.image.flatMap(URL.init(string:)), let file = await PushImage.download(url) {
                work.attach(file)
            }
            await report // first, because iOS may suspend the process afterwards
            work.finish()
        }
        return work
    }
}

/// A notification that the extension works on.
public final class PushExtensionWork: @unchecked Sendable {
    private let lock = NSLock()
    private var content: UNNotificationContent
    private var handler: ((UNNotificationContent) -> Void)?

    init(_ content: UNNotificationContent, _ handler: @escaping (UNNotificationContent) -> Void) {
        self.content = content
        self.handler = handler
    }

    /// Shows the notification as it is now. Call this in `serviceExtensionTimeWillExpire()`.
    public func finish() {
        lock.lock()
        defer { lock.unlock() }
        handler?(content)
        handler = nil
    }

    func attach(_ file: URL) {
        lock.lock()
        defer { lock.unlock() }
        guard let changed = content.mutableCopy() as? UNMutableNotificationContent,
            let image = try? UNNotificationAttachment(identifier: "image", url: file, options: nil)
        else { return }
        changed.attachments.append(image)
        content = changed
    }
}
#endif
