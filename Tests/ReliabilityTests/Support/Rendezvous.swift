import Foundation
import TestSupport

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Where processes wait for each other, so that they meet whatever else the machine does.
enum Rendezvous {
  /// Waits until so many processes have come to a folder.
  static func wait(in folder: String, process: Int, of count: Int) throws {
    try TemporaryFolder.write([], to: folder + "/ready\(process)")
    while try FileManager.default.contentsOfDirectory(atPath: folder).count(where: { $0.hasPrefix("ready") }) < count { usleep(1000) }
  }
}
