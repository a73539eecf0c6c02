#if canImport(UserNotifications) && canImport(UIKit)
import Pushsvc
import UIKit
import UserNotifications

/// Connects an app with `PushClient`: permission, token, notifications in the foreground, and taps.
/// Make one in the app's delegate, and keep it.
///
/// It becomes the delegate of `UNUserNotificationCenter`. An app with its own delegate sets that
/// after `start()`, and passes on the notifications for which `PushMessage(userInfo:)` is not nil.
public final class PushNotifications: NSObject, UNUserNotificationCenterDelegate {
    public let client: PushClient

    /// How a notification is shown while the app is in the foreground.
    public var presentation: UNNotificationPresentationOptions = [.banner, .list, .sound, .badge]

    /// Opens the link of a notification or button. By default, iOS opens it.
    public var open: @MainActor (URL) -> Void = { UIApplication.shared.open($0, options: [:], completionHandler: nil) }

    private var observer: (any NSObjectProtocol)?

    public init(_ client: PushClient) { self.client = client }

    /// Call this in `application(_:didFinishLaunchingWithOptions:)`: later, the tap that started the
    /// app is lost. If the user has given permission, iOS then passes the token to the app's delegate.
    @MainActor
    public func start() {
        let center = UNUserNotificationCenter.current()
        center.delegate = self
        let name = UIApplication.didBecomeActiveNotification
        observer = NotificationCenter.default.addObserver(forName: name, object: nil, queue: nil) { [client] _ in
            Task { await client.resume() }
        }
        center.getNotificationSettings { settings in
            guard settings.authorizationStatus != .notDetermined, settings.authorizationStatus != .denied else { return }
            DispatchQueue.main.async { UIApplication.shared.registerForRemoteNotifications() }
        }
    }

    /// Asks for permission, and subscribes the device. Returns whether the user gave permission. iOS
    /// shows its prompt only once, so call this after the user has done something that explains it.
    @MainActor
    @discardableResult
    public func subscribe() async throws -> Bool {
        let center = UNUserNotificationCenter.current()
        guard try await center.requestAuthorization(options: [.alert, .badge, .sound]) else { return false }
        UIApplication.shared.registerForRemoteNotifications()
        try await client.subscribe()
        return true
    }

    /// Call this in `application(_:didRegisterForRemoteNotificationsWithDeviceToken:)`.
    public func register(_ deviceToken: Data) {
        Task { [client] in try? await client.register(deviceToken) } // it is repeated if that helps
    }

    // MARK: - UNUserNotificationCenterDelegate

    public func userNotificationCenter(
        _ center: UNUserNotificationCenter, willPresent notification: UNNotification,
        withCompletionHandler done: @escaping (UNNotificationPresentationOptions) -> Void
    ) {
        guard let message = PushMessage(userInfo: notification.request.content.userInfo) else {
            return done(presentation) // not from pushsvc
        }
        done(presentation)
        Task { [client] in await client.reports.report(.received, of: message) }
    }

    public func userNotificationCenter(
        _ center: UNUserNotificationCenter, didReceive response: UNNotificationResponse,
        withCompletionHandler done: @escaping () -> Void
    ) {
        guard let message = PushMessage(userInfo: response.notification.request.content.userInfo) else {
            return done() // not from pushsvc
        }
        let action = response.actionIdentifier
        let isDismissal = action == UNNotificationDismissActionIdentifier
        let isButton = !isDismissal && action != UNNotificationDefaultActionIdentifier
        Task { @MainActor [client, open] in
            if !isDismissal, let link = message.link(button: isButton ? action : nil) { open(link) }
            await client.reports.report(isDismissal ? .dismissed : .clicked, of: message, button: isButton ? action : nil)
            done() // on the main thread, as iOS requires
        }
    }
}
#endif
