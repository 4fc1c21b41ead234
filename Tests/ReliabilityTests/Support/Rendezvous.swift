import Foundation
import TestSupport

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Lets processes wait for each other, so that they run at the same time even on a busy machine.
enum Rendezvous {
  /// Waits until this many processes have called it with the same folder.
  static func wait(in folder: String, process: Int, of count: Int) throws {
    try TemporaryFolder.write([], to: folder + "/ready\(process)")
    while try FileManager.default.contentsOfDirectory(atPath: folder).count(where: { $0.hasPrefix("ready") }) < count { usleep(1000) }
  }
}
