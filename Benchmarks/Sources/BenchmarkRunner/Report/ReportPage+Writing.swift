#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

extension ReportPage {
  /// Writes the page to a file, replacing it.
  public func write(to path: String) throws { try Data(html.utf8).write(to: URL(filePath: path)) }
}
