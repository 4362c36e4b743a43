import MillIO
import NIOCore
import NIOPosix

/// Finds out whether a listener's address can be had before anything is made or started.
enum ListenerProbe {
    /// An address that is taken or not this machine's, told with the option that chooses another.
    struct Unavailable: Error, CustomStringConvertible {
        var listener: String
        var option: String
        var address: ListenAddress
        var reason: String

        var description: String {
            "the \(listener) listener cannot use \(address.defaultValueDescription): \(reason)\n"
                + "Choose another address with \(option) HOST:PORT, or turn the listener off with \(option) off."
        }
    }

    /// Binds the address and lets go of it again.
    static func check(_ address: ListenAddress, listener: String, option: String) async throws(Unavailable) {
        guard !address.isOff else { return }
        do {
            let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
                .bind(host: address.host == "localhost" ? "127.0.0.1" : address.host, port: address.port).get()
            try await channel.close()
        } catch let error as IOError {
            throw Unavailable(listener: listener, option: option, address: address, reason: systemMessage(error.errnoCode))
        } catch {
            throw Unavailable(listener: listener, option: option, address: address, reason: "\(error)")
        }
    }
}
