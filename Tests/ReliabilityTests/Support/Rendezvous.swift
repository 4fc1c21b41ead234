import Foundation
import TestSupport

/// Lets processes wait for each other, so that they run at the same time even on a busy machine.
enum Rendezvous {
  /// Waits until this many processes have called it with the same folder.
  static func wait(in folder: String, process: Int, of count: Int) throws {
    try TemporaryFolder.write([], to: folder + "/ready\(process)")
    try waitUntil { try FileManager.default.contentsOfDirectory(atPath: folder).count { $0.hasPrefix("ready") } >= count }
  }
}
