import Foundation
import HoldfastPropertyList
import HoldfastStore
import Testing

@Suite struct StoreMetadataListTests {
  @Test(arguments: [false, true]) func valuesKeepTheirTypes(_ isXML: Bool) throws {
    let info: [String: StoreValue] = [
      "none": .null, "small": .int16(-3), "single": .float(0.1), "price": .decimal(Decimal(string: "-12.50") ?? 0),
      "large": .decimal(Decimal(string: "98765432109876543210.987654321") ?? 0), "link": .uri("a:b"), "date": .date(0.5),
      "text": .string("a\u{0}b"),
    ]
    var list = StoreMetadataList([:])
    try list.setUserInfo(info, isXML: isXML)
    #expect(list.userInfo == info)
  }

  /// The bug: it was read as the text "NaN".
  @Test(arguments: [false, true]) func aDecimalNaNIsReadAsOne(_ isXML: Bool) throws {
    var list = StoreMetadataList([:])
    try list.setUserInfo(["rate": .decimal(.nan)], isXML: isXML)
    guard case .decimal(let number)? = list.userInfo["rate"] else {
      Issue.record("\(list.userInfo) has no decimal.")
      return
    }
    #expect(number.isNaN)
  }

  /// Core Data keeps Holdfast's types when it changes a value. The bug: the text was read as nil or as the number at its beginning.
  @Test func aTextThatAnotherProgramStoresUnderAKeyIsReadAsText() throws {
    var list = StoreMetadataList([:])
    try list.setUserInfo(["none": .null, "price": .decimal(3), "range": .decimal(1), "id": .uuid(UUID())])
    for key in ["none", "price", "id"] { list[key] = .string("3 apples") }
    list["range"] = .string("1-2")
    #expect(
      list.userInfo == ["none": .string("3 apples"), "price": .string("3 apples"), "id": .string("3 apples"), "range": .string("1-2")])
  }
}
