// What the guide uses of SwiftUI. It draws nothing: the test presses the buttons by their titles,
// and plays iOS by lines of JSON on standard input.
@_exported import UIKit
import UserNotifications

@MainActor
public protocol View {
    associatedtype Body: View
    @ViewBuilder var body: Body { get }
}

extension Never: View { public var body: Never { fatalError() } }

public struct Views: View {
    public var body: Never { fatalError() }
}

@MainActor
@resultBuilder
public enum ViewBuilder {
    public static func buildBlock() -> Views { Views() }
    public static func buildBlock<Each: View>(_ each: Each) -> Each { each }
    public static func buildBlock<each Each: View>(_ views: repeat each Each) -> Views { Views() }
}

@MainActor var buttons: [String: () -> Void] = [:]

public struct Button: View {
    @MainActor
    public init(_ title: String, action: @escaping @MainActor () -> Void) { buttons[title] = action }
    public var body: Never { fatalError() }
}

public struct VStack<Content: View>: View {
    @MainActor
    public init(@ViewBuilder content: () -> Content) { _ = content() }
    public var body: Never { fatalError() }
}

@MainActor
public protocol Scene {}

public struct WindowGroup<Content: View>: Scene {
    @MainActor
    public init(@ViewBuilder content: () -> Content) {
        let view = content()
        if Content.Body.self != Never.self { _ = view.body }
    }
}

@propertyWrapper
@MainActor
public struct UIApplicationDelegateAdaptor<Delegate: NSObject & UIApplicationDelegate> {
    public let wrappedValue: Delegate
    public init(_ type: Delegate.Type = Delegate.self) {
        wrappedValue = Delegate()
        UIApplication.shared.delegate = wrappedValue
    }
}

@MainActor
public protocol App {
    associatedtype Body: Scene
    var body: Body { get }
    init()
}

extension App {
    public static func main() {
        let app = Self()
        let application = UIApplication.shared
        _ = application.delegate?.application(application, didFinishLaunchingWithOptions: nil)
        _ = app.body
        say(["started": true])
        Thread.detachNewThread {
            while let line = readLine() {
                let told = try! JSONSerialization.jsonObject(with: Data(line.utf8)) as! [String: Any]
                DispatchQueue.main.async { play(told) }
            }
            exit(0)
        }
        withExtendedLifetime(app) {
            while true { RunLoop.main.run(until: .distantFuture) }
        }
    }
}

@MainActor
private func play(_ told: [String: Any]) {
    let center = UNUserNotificationCenter.current()
    let content = UNNotificationContent(userInfo: told["payload"] as? [String: Any] ?? [:])
    let notification = UNNotification(UNNotificationRequest(content))
    switch told["do"] as! String {
    case "press":
        buttons[told["title"] as! String]!()
        say(["pressed": true])
    case "present":
        center.delegate!.userNotificationCenter(center, willPresent: notification) { options in
            say(["presented": options.rawValue])
        }
    case "tap":
        let action = told["action"] as? String ?? UNNotificationDefaultActionIdentifier
        let response = UNNotificationResponse(notification, action)
        center.delegate!.userNotificationCenter(center, didReceive: response) { say(["done": Thread.isMainThread]) }
    case "activate":
        NotificationCenter.default.post(name: UIApplication.didBecomeActiveNotification, object: nil)
        say(["active": true])
    default: fatalError(told.description)
    }
}
