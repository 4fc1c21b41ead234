import Foundation
import HoldfastPropertyList
import HoldfastStore
import TestSupport
import Testing

#if canImport(Glibc)
  import Glibc
#endif

/// Every length, count and offset in a binary property list. No value makes the reader trap or allocate memory.
@Suite(.ownThreads) struct LengthFieldTests {
  static let numbers: [UInt64] = [
    1 << 31 - 1, 1 << 31, 1 << 31 + 1, 1 << 32 - 1, 1 << 32, 1 << 32 + 1, 1 << 62, 1 << 63 - 1, 1 << 63, 1 << 63 + 1, .max - 1, .max,
    1 << 60 - 1, 1 << 61 + 3,
  ]

  private static func bigEndian(_ number: UInt64) -> [UInt8] { withUnsafeBytes(of: number.bigEndian) { Array($0) } }

  /// Files in which one field has an impossible number.
  static func files() -> [[UInt8]] {
    var files: [[UInt8]] = []
    for number in numbers {
      // Data, both kinds of text, array, set and dictionary with a count of eight bytes; then with four.
      for marker: UInt8 in [0x4F, 0x5F, 0x6F, 0xAF, 0xCF, 0xDF] {
        let content: [UInt8] = [1, 1, 1, 1]
        files.append(BinaryPropertyListTests.file([[marker, 0x13] + bigEndian(number) + content, [0x09]]))
        if number <= UInt64(UInt32.max) {
          files.append(BinaryPropertyListTests.file([[marker, 0x12] + bigEndian(number).suffix(4) + content, [0x09]]))
        }
        files.append(BinaryPropertyListTests.file([[marker, 0x14] + bigEndian(number) + bigEndian(number) + content, [0x09]]))
      }
      // The trailer's three numbers.
      let good = BinaryPropertyListTests.file([[0xA1, 1], [0x09]])
      for field in 0..<3 {
        var file = good
        file.replaceSubrange(file.count - 24 + field * 8..<file.count - 16 + field * 8, with: bigEndian(number))
        files.append(file)
      }
    }
    // Its two widths, and counts of an invalid width.
    for width: UInt8 in [0, 2, 3, 7, 9, 15, 127, 128, 255] {
      for place in [26, 25] {
        var file = BinaryPropertyListTests.file([[0xA1, 1], [0x09]])
        file[file.count - place] = width
        files.append(file)
      }
    }
    for marker: UInt8 in [0x15, 0x1F, 0x23, 0x00, 0x0F] { files.append(BinaryPropertyListTests.file([[0x4F, marker] + bigEndian(.max)])) }
    return files
  }

  @Test func RX17_everyLengthThatCannotBeRightIsAnErrorAndTakesNoMemory() async {
    await #expect(processExitsWith: .success) {
      let files = LengthFieldTests.files()
      precondition(files.count > 250)
      _ = try? PropertyList(binary: files[0])
      #if os(Linux)
        // Beyond its current memory, the process may allocate one megabyte.
        let pages = Int((try String(contentsOfFile: "/proc/self/statm", encoding: .utf8)).split(separator: " ")[5]) ?? 0
        let room = rlim_t(pages * Int(sysconf(Int32(_SC_PAGESIZE))) + 1 << 20)
        var limit = rlimit(rlim_cur: room, rlim_max: room)
        precondition(setrlimit(__rlimit_resource_t(2), &limit) == 0)
      #endif
      for file in files {
        do throws(PropertyListError) {
          let list = try PropertyList(binary: file)
          preconditionFailure("\(file) was read as \(list)")
        } catch {}
      }
    }
  }
}
